// The client of a Parley server for any page: `new Parley(options)`, `await parley.connect()`.

export { ParleyError } from './client/errors.js';
export { Parley } from './client/parley.js';
