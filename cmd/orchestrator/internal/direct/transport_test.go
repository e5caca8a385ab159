package direct

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// ask sends a request to the handler, without a network.
func ask(ctx context.Context, t *testing.T, handler http.HandlerFunc, body io.Reader) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/jobs/a%2Fb?x=1", body)
	require.NoError(t, err)
	return (&http.Client{Transport: Transport{Handler: handler}}).Do(request)
}

func TestTheHandlerSeesTheRequestAsAServerWould(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	answer, err := ask(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, "payload", string(body))
		require.Equal(t, "/jobs/a%2Fb?x=1", r.RequestURI)
		require.Equal(t, "localhost", r.Host)
		require.Equal(t, "127.0.0.1:0", r.RemoteAddr)
		w.Header().Set("X-Early", "yes")
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-Late", "yes")
		_, _ = io.WriteString(w, "answer")
	}, strings.NewReader("payload"))
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, answer.StatusCode)
	require.Equal(t, http.Header{"X-Early": {"yes"}}, answer.Header)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "answer", string(text))
	require.NoError(t, answer.Body.Close())
}

func TestBodiesAreStreamedBothWaysAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	source, write := io.Pipe()
	answer, err := ask(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, http.NewResponseController(w).EnableFullDuplex())
		require.NoError(t, http.NewResponseController(w).Flush())
		_, _ = io.Copy(w, r.Body)
	}, source)
	require.NoError(t, err, "the header comes before the body was sent")
	echo := bufio.NewReader(answer.Body)
	for _, line := range []string{"one\n", "two\n"} {
		_, err := io.WriteString(write, line)
		require.NoError(t, err)
		back, err := echo.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, line, back)
	}
	require.NoError(t, write.Close())
	_, err = echo.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, answer.Body.Close())
}

func TestAPanicBreaksTheAnswerOff(t *testing.T) {
	//nolint:bodyclose // There is no answer.
	_, err := ask(t.Context(), t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil)
	require.ErrorIs(t, err, errAborted)

	answer, err := ask(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		panic(http.ErrAbortHandler)
	}, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.ErrorIs(t, err, errAborted)
	require.Equal(t, "begun", string(text))
	require.NoError(t, answer.Body.Close())
}

func TestTheEndOfTheRequestFreesTheHandler(t *testing.T) {
	stuck, _ := io.Pipe() // A terminal where nobody types.
	why := errors.New("told to stop")
	for name, end := range map[string]func(cancel context.CancelCauseFunc, answer *http.Response){
		"context": func(cancel context.CancelCauseFunc, _ *http.Response) { cancel(why) },
		"close":   func(_ context.CancelCauseFunc, answer *http.Response) { _ = answer.Body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			freed := make(chan error, 1)
			answer, err := ask(ctx, t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_, err := io.Copy(w, r.Body)
				freed <- err
			}, stuck)
			require.NoError(t, err)
			end(cancel, answer)
			require.Error(t, <-freed)
			_ = answer.Body.Close()
		})
	}
	require.NoError(t, stuck.Close())
}

func TestAPastDeadlineEndsTheReading(t *testing.T) {
	stuck, _ := io.Pipe()
	answer, err := ask(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		require.NoError(t, control.SetWriteDeadline(time.Time{}))
		require.NoError(t, control.SetReadDeadline(time.Now().Add(time.Hour)))
		require.NoError(t, control.SetReadDeadline(time.Unix(1, 0)))
		_, err := r.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}, stuck)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, stuck.Close())
}
