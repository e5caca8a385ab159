package direct

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// ask sends a request to the handler, without a network.
func ask(ctx context.Context, t *testing.T, handler http.HandlerFunc, body io.Reader) (*http.Response, error) {
	t.Helper()
	transport, stop := Serve(handler, slog.New(slog.DiscardHandler))
	t.Cleanup(stop)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/jobs/a%2Fb?x=1", body)
	require.NoError(t, err)
	return (&http.Client{Transport: transport}).Do(request)
}

func TestBodiesAreStreamedBothWaysAtOnce(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	source, write := io.Pipe()
	answer, err := ask(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		require.NoError(t, control.EnableFullDuplex())
		require.NoError(t, control.Flush())
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			_, _ = io.WriteString(w, lines.Text()+"\n")
			require.NoError(t, control.Flush())
		}
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
	require.ErrorIs(t, err, io.EOF)

	answer, err := ask(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
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
				control := http.NewResponseController(w)
				_ = control.EnableFullDuplex()
				_ = control.Flush()
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
