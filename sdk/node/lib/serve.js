import { writeSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { checkCount, checkText } from './check.js';
import { Handler } from './handler.js';
import { cookieKey, cookieValue, exit, maxConcurrency, maxVersion, protocolVersion } from './limits.js';
import { Server } from './server.js';
import { setUp } from './tracing.js';
import { Watchdog } from './watchdog.js';

// How long the server may take to send its last message.
const lastWordsMs = 2000;

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
  if (!sockets) refuse('PLUGIN_UNIX_SOCKET_DIR is not set');
  run(manifest, new Map(handlers.map((each) => [each.jobType, each])), sockets).catch((error) => refuse(error.message));
}

async function run(manifest, handlers, sockets) {
  const printHandshake = divertOutput();
  await setUp();
  // A no-op, not 'ignore': child processes of handlers would inherit that.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});

  let hasDrained = false;
  const end = (why) => {
    if (hasDrained) process.exit(exit.drained);
    writeSync(2, `plugin process ends: ${why}\n`);
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

// Redirects what JavaScript prints from standard output to standard error, and returns what still writes to standard
// output. The orchestrator also reads what child processes print there.
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
    if (!(each instanceof Handler)) throw new TypeError(`${each} is not a handler; use handler(…)`);
    if (seen.has(each.jobType)) throw new TypeError(`job type ${each.jobType} has two handlers`);
    seen.add(each.jobType);
  }
  if (concurrency !== undefined) checkCount('concurrency', concurrency, maxConcurrency);
  return { version, concurrency, jobTypes: handlers.map(({ wire }) => wire) };
}

// Says what the program is to someone who started it by hand.
function introduce(program, { version, jobTypes }) {
  console.error(`This is a Holdfast plugin, version ${version}. It has handlers for the job types

${jobTypes.map(({ name }) => `  ${name}\n`).join('')}
An orchestrator starts it; you do not run it by hand. Add it to config.yaml:

  plugins:
    - name: ${basename(program, extname(program))}
      path: ${process.argv[1]}

Start the orchestrator with "orchestrator serve --config config.yaml". Then submit
a job:

  curl localhost:8080/jobs -H 'Content-Type: application/json' \\
    -d '{"jobType": "${jobTypes[0].name}", "payload": {}}'`);
}
