package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// maxAnswer is how much of a collector's answer over HTTP is read, in bytes.
	maxAnswer = 64 << 10
	// maxAsked bounds the pause that a collector asks for.
	maxAsked = time.Minute
)

// answer is what the exporter does not say about a batch: what the collector rejected,
// and how each try went.
type answer struct {
	// rejected counts the spans that the collector did not take, of a batch that it took.
	rejected int
	// warning is what it says about such a batch.
	warning string
	// tried is called with the error of each try, and the pause that the collector asks
	// for; nil for nobody.
	tried func(error, time.Duration)
}

type answerKey struct{}

// listen returns a context for a send whose answer is to be kept.
func listen(ctx context.Context, a *answer) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

func answerTo(ctx context.Context) *answer {
	a, _ := ctx.Value(answerKey{}).(*answer)
	if a == nil {
		a = new(answer)
	}
	if a.tried == nil {
		a.tried = func(error, time.Duration) {}
	}
	return a
}

func (a *answer) partly(p *collect.ExportTracePartialSuccess) {
	a.rejected, a.warning = int(p.GetRejectedSpans()), p.GetErrorMessage()
}

// overGRPC is an interceptor that bounds each try and reads the collector's answers. It
// leaves the exporter with success where a batch was taken in part.
func overGRPC(within time.Duration) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		a := answerTo(ctx)
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		err := next(ctx, method, request, reply, conn, options...)
		pause, err := boundedPause(err)
		a.tried(err, pause)
		if taken, is := reply.(*collect.ExportTraceServiceResponse); err == nil && is {
			a.partly(taken.GetPartialSuccess())
			taken.PartialSuccess = nil
		}
		return err
	}
}

// boundedPause returns the pause that the status of an error asks for, and shortens it
// in the error too: the exporter would drop the batch at once.
func boundedPause(err error) (time.Duration, error) {
	refused := status.Convert(err)
	for _, detail := range refused.Details() {
		retry, is := detail.(*errdetails.RetryInfo)
		if !is {
			continue
		}
		pause := retry.GetRetryDelay().AsDuration()
		if pause <= maxAsked {
			return pause, err
		}
		short := status.New(refused.Code(), refused.Message())
		if short, err := short.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(maxAsked)}); err == nil {
			return maxAsked, short.Err()
		}
	}
	return 0, err
}

// overHTTP reads the collector's answers, and sends by the transport.
type overHTTP struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o overHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	a := answerTo(r.Context())
	response, err := o.RoundTripper.RoundTrip(r)
	if err != nil {
		a.tried(err, 0)
		return nil, temporary{err}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		a.tried(err, 0)
		return nil, temporary{err}
	}
	if response.StatusCode/100 == 2 {
		a.tried(nil, 0)
		if p, read := partialSuccess(response.Header.Get("Content-Type"), body); read {
			a.partly(p)
			body = nil
		}
	} else {
		var pause time.Duration
		if asked := response.Header.Get("Retry-After"); asked != "" {
			pause = min(retryAfter(asked, time.Now()), maxAsked)
			response.Header.Set("Retry-After", strconv.Itoa(int(pause.Round(time.Second)/time.Second)))
		}
		a.tried(fmt.Errorf("%s (%s)", response.Status, bytes.TrimSpace(body)), pause)
	}
	response.ContentLength, response.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// temporary makes the exporter try again after any failure of the connection. By itself
// it does not after most of them, such as one that is refused.
type temporary struct{ error }

// Temporary is what url.Error asks.
func (temporary) Temporary() bool { return true }

func (t temporary) Unwrap() error { return t.error }

func partialSuccess(contentType string, body []byte) (p *collect.ExportTracePartialSuccess, read bool) {
	var taken collect.ExportTraceServiceResponse
	var err error
	switch kind, _, _ := mime.ParseMediaType(contentType); kind {
	case "application/x-protobuf":
		err = proto.Unmarshal(body, &taken)
	case "application/json":
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, &taken)
	default:
		return nil, false
	}
	return taken.GetPartialSuccess(), err == nil
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
