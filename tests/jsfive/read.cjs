// Prints what jsfive reads of a file: {path: {shape, values}, or {error}} of every dataset, as JSON.
const fs = require('fs');
const jsfive = require('jsfive');

console.warn = () => {};     // attributes of types that jsfive lacks
const log = console.log;
console.log = () => {};
const bytes = fs.readFileSync(process.argv[2]);
const found = {};

function read(dataset) {
    const values = Array.from(dataset.value ?? []);
    // JSON has no infinities and no large integers
    return {shape: dataset.shape, values: values.map(value => typeof value === 'string' ? value : String(value))};
}

function walk(group, path) {
    for (const name of group.keys) {
        const inner = `${path}/${name}`;
        try {
            const item = group.get(name);
            if (item instanceof jsfive.Group) walk(item, inner);
            else found[inner] = read(item);
        } catch (error) {
            found[inner] = {error: String(error)};
        }
    }
}

walk(new jsfive.File(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), 'file'), '');
log(JSON.stringify(found));
