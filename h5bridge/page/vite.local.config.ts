import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// one script and one style sheet, which local.mjs puts into the page: a page opened from the disk may load no others
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    outDir: 'build',
    target: 'es2022',
    assetsInlineLimit: () => true,
    cssCodeSplit: false,
    license: { fileName: 'licences.md' },
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 4000,
    rolldownOptions: { input: 'local.html', output: { codeSplitting: false } },
  },
});
