import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Server as GrpcServer, ServerCredentials, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { capsOf } from './caps.js';
import { maxMessage } from './limits.js';
import { Session } from './session.js';

const { 'holdfast.handler.v1.Handler': protocol } = loadSync(
  fileURLToPath(new URL('./handler.proto', import.meta.url)),
  { longs: Number, enums: String, arrays: true },
);

// The part of grpc.health.v1 that the orchestrator asks for, with its messages as bytes.
const health = {
  Check: {
    path: '/grpc.health.v1.Health/Check', requestStream: false, responseStream: false,
    requestSerialize: (bytes) => bytes, requestDeserialize: (bytes) => bytes,
    responseSerialize: (bytes) => bytes, responseDeserialize: (bytes) => bytes,
  },
};
const healthOf = [Buffer.alloc(0), Buffer.from('\x0a\x06plugin')]; // the whole server, the named service
const serving = Buffer.from([0x08, 1]);
const notServing = Buffer.from([0x08, 2]);

/** Serves the protocol on a unix socket. */
export class Server {
  #server = new GrpcServer({
    'grpc.max_receive_message_length': maxMessage, 'grpc.max_send_message_length': maxMessage,
  });
  #session;
  #caps = capsOf();

  constructor(manifest, handlers, process) {
    this.#server.addService(protocol, {
      Describe: ({ request }, answer) => {
        this.#caps = capsOf(request);
        answer(null, manifest);
      },
      Work: (call) => { this.#session = new Session(handlers, call, process, this.#caps); },
    });
    this.#server.addService(health, { Check: ({ request }, answer) => this.#check(request, answer) });
  }

  /** Listens on a new socket in the directory, and resolves to its path. */
  listen(directory) {
    const path = join(directory, `handler-${randomBytes(6).toString('hex')}`);
    return new Promise((listening, failed) => {
      this.#server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => {
        if (error) failed(error);
        else listening(path);
      });
    });
  }

  /** Takes no more calls, and calls back when the running ones are done. */
  stop(done) {
    this.#server.tryShutdown(done);
  }

  #check(request, answer) {
    if (!healthOf.some((name) => name.equals(request))) {
      answer({ code: status.NOT_FOUND, details: 'unknown service' });
      return;
    }
    // Without its stream the process is of no use.
    answer(null, this.#session?.isLost ? notServing : serving);
  }
}
