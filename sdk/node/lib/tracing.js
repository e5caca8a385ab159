// OpenTelemetry, if its packages are installed. Otherwise nothing is traced.

const load = async (name) => {
  try {
    return await import(name);
  } catch (error) {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
};

const api = await load('@opentelemetry/api');

// How long spans are collected before they are sent, and how long sending the last ones may take.
const gatherMs = 500;
const flushMs = 1000;

const exporters = {
  grpc: '@opentelemetry/exporter-trace-otlp-grpc',
  'http/protobuf': '@opentelemetry/exporter-trace-otlp-proto',
};

let provider;

/**
 * Sends this process's spans by OTLP, if OpenTelemetry's environment variables name a collector and the packages for it
 * are installed: @opentelemetry/sdk-trace-node, @opentelemetry/resources and the protocol's exporter.
 */
export async function setUp(env = process.env) {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!api || !endpoint || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (!exporters[protocol]) {
    console.error(`tracing: OTEL_EXPORTER_OTLP_PROTOCOL is ${protocol}; spans are sent by grpc or http/protobuf`);
    return;
  }
  const [sdk, otlp] = [await load('@opentelemetry/sdk-trace-node'), await load(exporters[protocol])];
  if (!sdk || !otlp) return;
  const processor = new sdk.BatchSpanProcessor(new otlp.OTLPTraceExporter(), {
    ...(env.OTEL_BSP_SCHEDULE_DELAY ? {} : { scheduledDelayMillis: gatherMs }),
  });
  provider = new sdk.NodeTracerProvider({ spanProcessors: [processor], resource: await describe() });
  provider.register();
}

// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, which the provider does not read by itself.
async function describe() {
  const resources = await load('@opentelemetry/resources');
  return resources?.defaultResource?.().merge(resources.detectResources({ detectors: [resources.envDetector] }));
}

/** Sends the collected spans, and waits at most a second. It does not throw. */
export async function flush() {
  if (!provider) return;
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, flushMs); });
  await Promise.race([provider.forceFlush().catch(() => {}), late]);
  clearTimeout(timer);
}

const form = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Calls the function with the attempt's span as the current one. */
export function within(traceparent, tracestate, run) {
  const [, traceId, spanId, flags] = form.exec(traceparent ?? '') ?? [];
  if (!api || !traceId) return run();
  const parent = {
    traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true,
    ...(tracestate ? { traceState: api.createTraceState(tracestate) } : {}),
  };
  return api.context.with(api.trace.setSpanContext(api.context.active(), parent), run);
}

/** The ids of the current span, for a log record; undefined if there is none. */
export function currentIDs() {
  const span = api?.trace.getSpanContext(api.context.active());
  return span && api.isSpanContextValid(span) ? { trace_id: span.traceId, span_id: span.spanId } : undefined;
}
