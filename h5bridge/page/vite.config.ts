import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  base: './', // relative addresses: the page is served below any prefix
  plugins: [react()],
  build: {
    outDir: 'build',
    target: 'es2022',
    assetsInlineLimit: 0,
    license: { fileName: 'licences.md' },
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: {
      input: { index: 'index.html', explore: 'explore.html', ms: 'ms.html' },
      // a file of their own for the packages of the explorer, which seldom change
      output: { codeSplitting: { groups: [{ name: 'h5web', test: /node_modules[\\/](?!uplot)/ }] } },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:5380', '/live': 'http://127.0.0.1:5380' } },
});
