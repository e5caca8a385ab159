// Constants of the protocol, and limits that the orchestrator checks. Sizes are in bytes.

export const protocolVersion = 1;

export const cookieKey = 'HOLDFAST_HANDLER';
export const cookieValue = 'holdfast-handler-plugin';

// The largest gRPC message, in both directions. gRPC's default for receiving is 4 MiB.
export const maxMessage = 64 << 20;

// The largest result, progress or checkpoint, unless the orchestrator sets a lower cap. It leaves room for the rest of
// the message.
export const maxValue = maxMessage - (1 << 20);

export const maxSchema = 256 << 10;
export const maxName = 200;
export const maxVersion = 200;
export const maxDescription = 1000;
export const maxMaxAttempts = 1_000_000;
export const maxConcurrency = 10_000;
export const maxPointer = 1000;
export const maxKeyClass = 100; // characters
export const maxConcurrencyLimit = 100_000;

// Ten years, in milliseconds.
export const longest = 10 * 365 * 24 * 3600 * 1000;

// Longer texts of failures and log records are cut.
export const maxCode = 200;
export const maxMessageText = 32 << 10;
export const maxStack = 32 << 10;
export const maxLog = 16 << 10;

// Codes of the SDK's own failures.
export const code = {
  timeout: 'timeout',
  leaseLost: 'lease_lost',
  badPayload: 'bad_payload',
  badResult: 'bad_result',
  unknownType: 'unknown_type',
  resultTooLarge: 'result_too_large',
  checkpointTooLarge: 'checkpoint_too_large',
  followUpsTooLarge: 'followups_too_large',
  unknownPredecessor: 'unknown_predecessor',
  resultOmitted: 'result_omitted',
};

// Exit codes of a plugin process.
export const exit = {
  drained: 0,
  // Started by hand, or without handlers.
  unusable: 1,
  // The orchestrator is gone, or a lease ran out.
  abandoned: 3,
};
