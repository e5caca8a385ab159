package spans

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Exporter takes the spans of jobs.
type Exporter interface {
	// Export takes a span that has ended, as OTLP encodes it: a message Span. It keeps
	// nothing of the slice, and never waits.
	Export(span []byte)
	// Sampled returns whether a trace that begins here with the id is sampled.
	Sampled(id trace.TraceID) bool
}

// The bits of flags that say whether a context came from another process, and that this is
// known; and the code of a status that is an error.
const (
	knownOrigin, otherProcess = 0x100, 0x200
	statusError               = 2
)

// span is a span that is being written, in OTLP's encoding. Whoever begins one ends it, once.
// Spans of OpenTelemetry's SDK, and the messages that its exporter makes of them, cost some ten
// times as much: see docs/adr/0024-spans-of-jobs-are-encoded-at-once.md.
type span struct {
	to    Exporter
	began time.Time
	wire  []byte
}

// unused are spans whose memory can be used again. What a job says of itself fits; errors may
// need more.
var unused = sync.Pool{New: func() any { return &span{wire: make([]byte, 0, 1<<10)} }}

// begin begins the span of a context, which is that of its trace. A parent that is not valid is
// none.
func begin(to Exporter, own, parent trace.SpanContext, kind trace.SpanKind, what, jobType string, at time.Time) *span {
	s := unused.Get().(*span)
	s.to, s.began = to, at
	traceID, id, above := own.TraceID(), own.SpanID(), parent.SpanID()
	b := appendBytes(s.wire[:0], spanTrace, traceID[:])
	b = appendBytes(b, spanID, id[:])
	if state := own.TraceState(); state.Len() > 0 {
		b = appendString(b, spanState, state.String())
	}
	if above.IsValid() {
		b = appendBytes(b, spanParent, above[:])
	}
	b = appendFixed32(b, spanFlags, flags(own.TraceFlags(), parent))
	b = appendNumber(b, spanKind, uint64(kind)) // which has OTLP's numbers
	b, name := open(b, spanName)
	b = shut(append(append(b, what...), valid(jobType)...), name)
	s.wire = appendTime(b, spanStart, at)
	return s
}

// flags are those of a context, with where another one, its parent or itself, came from.
func flags(of trace.TraceFlags, from trace.SpanContext) uint32 {
	if from.IsRemote() {
		return uint32(of) | knownOrigin | otherProcess
	}
	return uint32(of) | knownOrigin
}

// set adds attributes. Their names must differ.
func (s *span) set(about ...attribute.KeyValue) {
	b := s.wire
	for i := range about {
		b = appendAttribute(b, spanAttributes, &about[i])
	}
	s.wire = b
}

// event adds something that happened.
func (s *span) event(name string, at time.Time, about ...attribute.KeyValue) {
	b, event := open(s.wire, spanEvents)
	b = appendString(appendTime(b, eventTime, at), eventName, name)
	for i := range about {
		b = appendAttribute(b, eventAttributes, &about[i])
	}
	s.wire = shut(b, event)
}

// link adds a link to another span, and what that is.
func (s *span) link(to trace.SpanContext, what string) {
	traceID, id := to.TraceID(), to.SpanID()
	b, link := open(s.wire, spanLinks)
	b = appendBytes(appendBytes(b, linkTrace, traceID[:]), linkSpan, id[:])
	b = appendText(b, linkAttributes, string(attrLink), what)
	s.wire = shut(appendFixed32(b, linkFlags, flags(to.TraceFlags(), to)), link)
}

// fail says that the span is an error, and why. It is called once at most.
func (s *span) fail(why string) {
	b, status := open(s.wire, spanStatus)
	b = appendNumber(appendString(b, statusMessage, valid(why)), statusCode, statusError)
	s.wire = shut(b, status)
}

// end ends and exports the span.
func (s *span) end(at time.Time) {
	s.wire = appendTime(s.wire, spanEnd, at)
	s.to.Export(s.wire)
	s.to = nil
	unused.Put(s)
}

// endNow ends the span at this moment, however the clock was set since it began.
func (s *span) endNow() { s.end(s.began.Add(time.Since(s.began))) }
