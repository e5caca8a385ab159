import { writeSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { checkCount, checkText } from './check.js';
import { Handler } from './handler.js';
import { cookieKey, cookieValue, exit, maxConcurrency, maxVersion, protocolVersion } from './limits.js';
import { Server } from './server.js';
import { setUp } from './tracing.js';
import { Watchdog } from './watchdog.js';

// How long the last message may take on its way out.
const lastWordsMs = 2000;

/**
 * Serves the handlers to the orchestrator that launched this process, until that has no more use for it.
 *
 * From then on standard output is standard error, so that a stray console.log disturbs nothing; the process takes
 * no notice of SIGINT and SIGTERM, which a terminal sends to everybody and the orchestrator answers for; and it
 * ends when its standard input does, since then the orchestrator is gone.
 *
 * Started by hand, the process says what it is and exits 1.
 *
 * @param {Handler[]} handlers
 * @param {object} [options]
 * @param {string} [options.version] the version of the program, for people
 * @param {number} [options.concurrency] how many attempts each process of it wants at once; the orchestrator's
 *   configuration wins over it
 */
export function serve(handlers, { version = 'unknown', concurrency } = {}) {
  const program = basename(process.argv[1]);
  const refuse = (why) => {
    console.error(`${program}: ${why}`);
    process.exit(exit.unusable);
  };
  let manifest;
  try {
    manifest = assemble(handlers, version, concurrency);
  } catch (error) {
    refuse(error.message);
  }
  if (process.env[cookieKey] !== cookieValue) {
    introduce(program, manifest);
    process.exit(exit.unusable);
  }
  const sockets = process.env.PLUGIN_UNIX_SOCKET_DIR;
  if (!sockets) refuse('PLUGIN_UNIX_SOCKET_DIR does not say where its socket shall be');
  run(manifest, new Map(handlers.map((each) => [each.jobType, each])), sockets).catch((error) => refuse(error.message));
}

async function run(manifest, handlers, sockets) {
  const printHandshake = divertOutput();
  await setUp();
  // To ignore them instead would make every program that a handler starts ignore them, too.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});

  let hasDrained = false;
  const end = (why) => {
    if (hasDrained) process.exit(exit.drained);
    writeSync(2, `handler process ends: ${why}\n`);
    process.exit(exit.abandoned);
  };
  const server = new Server(manifest, handlers, {
    exit: end,
    watchdog: new Watchdog(end),
    drained: () => {
      hasDrained = true;
      const leave = () => process.exit(exit.drained);
      server.stop(leave);
      setTimeout(leave, lastWordsMs);
    },
  });
  printHandshake(`1|${protocolVersion}|unix|${await server.listen(sockets)}|grpc\n`);
}

// Makes standard output standard error for whatever JavaScript prints, and returns the way to print to what it was.
// What other programs print there the orchestrator reads, too.
function divertOutput() {
  const print = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return print;
}

function assemble(handlers, version, concurrency) {
  checkText('the version', version, maxVersion);
  if (!Array.isArray(handlers) || handlers.length === 0) throw new TypeError('there is no handler to serve');
  const seen = new Set();
  for (const each of handlers) {
    if (!(each instanceof Handler)) throw new TypeError(`${each} was not made by handler(…)`);
    if (seen.has(each.jobType)) throw new TypeError(`job type ${each.jobType} has two handlers`);
    seen.add(each.jobType);
  }
  if (concurrency !== undefined) checkCount('concurrency', concurrency, maxConcurrency);
  return { version, concurrency, jobTypes: handlers.map(({ wire }) => wire) };
}

// Tells somebody who started the program by hand what it is.
function introduce(program, { version, jobTypes }) {
  console.error(`This is a Holdfast handler plugin, version ${version}. It serves the job types

${jobTypes.map(({ name }) => `  ${name}\n`).join('')}
It is not run by hand: an orchestrator launches it. Declare it in config.yaml,

  plugins:
    - name: ${basename(program, extname(program))}
      path: ${process.argv[1]}

start the orchestrator with "orchestrator serve --config config.yaml", and
submit a job with

  curl localhost:8080/jobs -H 'Content-Type: application/json' \\
    -d '{"jobType": "${jobTypes[0].name}", "payload": {}}'`);
}
