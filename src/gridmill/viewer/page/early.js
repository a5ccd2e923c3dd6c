// The engine of an exported page, compiled while the rest of the page is read: a script of its own behind its bytes.

import {fromSevenBits} from "./seven_bits.js";

const packed = fromSevenBits(document.getElementById("data-engine").textContent);
const stream = new Response(packed).body.pipeThrough(new DecompressionStream("gzip"));
window.gridmillModule = WebAssembly.compileStreaming(new Response(stream, {headers: {"Content-Type": "application/wasm"}}));
window.gridmillModule.catch(() => {}); // said when the page waits for it
