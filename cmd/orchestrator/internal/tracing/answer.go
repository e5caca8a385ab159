package tracing

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxAnswer is how much of a collector's answer over HTTP is read, in bytes.
const maxAnswer = 64 << 10

// answer is what a collector had to say to a batch, beside the error. The library
// tells neither how many spans of a batch were rejected nor how long to wait.
type answer struct {
	// rejected are spans that it did not take, of a batch that it took.
	rejected int
	// warning is what it says of such a batch.
	warning string
	// again says that a batch that it did not take may be sent once more.
	again bool
	// pause is how long it wants to be left alone; zero when it does not say.
	pause time.Duration
}

type answerKey struct{}

// listen is a context in which what is sent has its answer.
func listen(ctx context.Context, a *answer) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

// answerTo is the answer of the context, made anew.
func answerTo(ctx context.Context) *answer {
	a, _ := ctx.Value(answerKey{}).(*answer)
	if a == nil {
		return new(answer)
	}
	*a = answer{}
	return a
}

func (a *answer) partly(p *collect.ExportTracePartialSuccess) {
	a.rejected, a.warning = int(p.GetRejectedSpans()), p.GetErrorMessage()
}

// overGRPC reads answers, as an interceptor. The library is left with success where
// a batch was taken in part.
func overGRPC(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	a := answerTo(ctx)
	err := next(ctx, method, request, reply, conn, options...)
	if taken, is := reply.(*collect.ExportTraceServiceResponse); err == nil && is {
		a.partly(taken.GetPartialSuccess())
		taken.PartialSuccess = nil
		return nil
	}
	refused := status.Convert(err)
	told := false
	for _, detail := range refused.Details() {
		if retry, is := detail.(*errdetails.RetryInfo); is {
			told, a.pause = true, retry.GetRetryDelay().AsDuration()
		}
	}
	switch refused.Code() { // as OTLP has it
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		a.again = true
	case codes.ResourceExhausted:
		a.again = told
	default: // it will be refused as often as it is sent
	}
	return err
}

// overHTTP reads answers, and sends by the transport.
type overHTTP struct{ *http.Transport }

// retryable are the states of HTTP after which OTLP has a batch sent once more.
var retryable = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// RoundTrip implements http.RoundTripper.
func (o overHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	a := answerTo(r.Context())
	response, err := o.Transport.RoundTrip(r)
	if err != nil {
		a.again = true
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		a.again = true
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		if p, read := partialSuccess(response.Header.Get("Content-Type"), body); read {
			a.partly(p)
			body = nil
		}
	} else if a.again = slices.Contains(retryable, response.StatusCode); a.again {
		a.pause = retryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	response.ContentLength, response.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return response, nil
}

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
