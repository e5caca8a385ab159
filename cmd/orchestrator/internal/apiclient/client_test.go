package apiclient

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a client of the handler.
func serve(t *testing.T, handler http.HandlerFunc, login ...Login) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := Config{Server: server.URL, Agent: "test"}
	if len(login) > 0 {
		config.Login = login[0]
	}
	c, err := New(config)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func refuse(w http.ResponseWriter, status int, problem string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, problem)
}

func TestOnlyTheAddressOfAServerIsTakenForOne(t *testing.T) {
	for _, address := range []string{"", "localhost:8080", "ftp://x", "http://u:p@host", "http://x?y=1", "http://%zz"} {
		_, err := New(Config{Server: address})
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "u:p")
	}
	c, err := New(Config{Server: "https://host/prefix/"})
	require.NoError(t, err)
	require.Equal(t, "https://host/prefix", c.Server())
}

func TestCredentialsAreSent(t *testing.T) {
	for want, login := range map[string]Login{
		"":              {},
		"Bearer secret": {Token: "secret", User: "u", Password: "p"},
		"Basic dTpw":    {User: "u", Password: "p"},
		"Basic OnA=":    {Password: "p"},
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, want, r.Header.Get("Authorization"))
			_, _ = io.WriteString(w, "{}")
		}, login)
		_, err := c.Get(t.Context(), "/", nil)
		require.NoError(t, err)
	}
}

func TestRefusalsSayWhatIsWrongAndWhatToDo(t *testing.T) {
	const problem = `{"title":"Unprocessable Entity","status":422,"detail":"validation failed",
		"errors":[{"location":"#/tags/1","message":"must be a string"},{"location":"query.limit","message":"is not known"}]}`
	for name, test := range map[string]struct {
		status int
		header http.Header
		body   string
		login  Login
		want   string
	}{
		"faults": {status: 422, body: problem, want: "validation failed\n  #/tags/1: must be a string\n  query.limit: is not known"},
		"no credentials": {
			status: 401, body: `{"status":401,"detail":"credentials are needed"}`,
			want: "credentials are needed\n  Set HOLDFAST_TOKEN, or HOLDFAST_USER and HOLDFAST_PASSWORD.",
		},
		"wrong ones": {
			status: 401, body: `{"status":401,"detail":"the credentials are wrong"}`, login: Login{Token: "x", Source: "in HOLDFAST_TOKEN"},
			want: "the credentials are wrong\n  The credentials in HOLDFAST_TOKEN were not accepted. Set HOLDFAST_TOKEN, or HOLDFAST_USER and HOLDFAST_PASSWORD.",
		},
		"weak ones": {
			status: 403, body: `{"status":403,"detail":"not allowed"}`, login: Login{Token: "x", Source: "in HOLDFAST_TOKEN"},
			want: "not allowed\n  The credentials in HOLDFAST_TOKEN do not allow this. Set HOLDFAST_TOKEN to a token that does, or HOLDFAST_USER and HOLDFAST_PASSWORD.",
		},
		"too many": {
			status: 429, header: http.Header{"Retry-After": {"7"}}, body: `{"status":429,"detail":"too many requests"}`,
			want: "too many requests\n  Try again in 7s.",
		},
		"proxy":    {status: 502, body: "<html>Bad Gateway</html>", want: "the server answers 502 Bad Gateway"},
		"redirect": {status: 302, header: http.Header{"Location": {"/login"}}, want: "the server redirects to /login, which is not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, values := range test.header {
					w.Header()[name] = values
				}
				refuse(w, test.status, test.body)
			}, test.login)
			_, err := c.Get(t.Context(), "/jobs", nil)
			require.EqualError(t, err, test.want)
		})
	}
}

func TestAnswersOfStrangersAreNotTakenForOurs(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	_, err := c.Get(t.Context(), "/jobs", nil)
	require.ErrorContains(t, err, "is not JSON: is that a Holdfast server?")
}

func TestRefusedConnectionSaysWhereAndWhatToDo(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c, err := New(Config{Server: server.URL})
	require.NoError(t, err)
	_, err = c.Get(t.Context(), "/jobs", nil)
	require.ErrorContains(t, err, "no answer from "+server.URL)
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "orchestrator serve")
	require.ErrorContains(t, err, "--direct")
}

func TestWaitGoesOnUntilTheJobHasEnded(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/jobs/a%2Fb", r.URL.EscapedPath())
		require.Equal(t, "20s", r.URL.Query().Get("wait"))
		switch asked.Add(1) {
		case 1:
			_, _ = io.WriteString(w, `{"status":"RUNNING"}`)
		case 2:
			refuse(w, http.StatusServiceUnavailable, `{"status":503}`)
		default:
			_, _ = io.WriteString(w, `{"status":"FAILED","x":1}`)
		}
	})
	var seen []string
	answer, ended, err := c.Await(t.Context(), "a/b", 0, 20*time.Second, func(_ Answer, job v1.Job) { seen = append(seen, string(job.Status)) })
	require.NoError(t, err)
	require.True(t, ended)
	require.JSONEq(t, `{"status":"FAILED","x":1}`, string(answer))
	require.Equal(t, []string{"RUNNING", "FAILED"}, seen, "a server that restarts is borne")
}

func TestWaitGivesUpAfterItsTime(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"PENDING"}`) })
	answer, ended, err := c.Await(t.Context(), "x", 300*time.Millisecond, time.Second, nil)
	require.NoError(t, err)
	require.False(t, ended)
	require.JSONEq(t, `{"status":"PENDING"}`, string(answer))
}

func TestWaitForWhatDoesNotExistFailsAtOnce(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, `{"status":404,"detail":"no such job"}`) })
	_, _, err := c.Await(t.Context(), "x", 0, time.Second, nil)
	require.EqualError(t, err, "no such job")
}

func TestWaitEndsWithItsReason(t *testing.T) {
	why := errors.New("told to stop")
	ctx, end := context.WithCancelCause(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		end(why)
		<-r.Context().Done()
	})
	_, _, err := c.Await(ctx, "x", 0, time.Second, nil)
	require.ErrorIs(t, err, why)
}

// results collects what a batch hands over.
type results []string

func (r *results) see(result Result) error {
	var accepted struct{ Job struct{ JobID string } }
	if err := result.Answer.Into(&accepted); err != nil {
		return err
	}
	text := fmt.Sprintf("line %d: job %s", result.Line, accepted.Job.JobID)
	switch {
	case result.Line == 0:
		text = string(result.Answer)
	case result.Problem != nil:
		text = fmt.Sprintf("line %d: %v", result.Line, result.Problem)
	}
	*r = append(*r, text)
	return nil
}

func TestLinesAreNamedAsTheyStandInTheFile(t *testing.T) {
	const file = "{\"a\":1}\n\n  \r\n{\"a\":2}\n{\"a\":3}\n\n{\"a\":4}"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/jobs/batch?atomic=false", r.URL.RequestURI())
		require.Equal(t, "application/x-ndjson", r.Header.Get("Content-Type"))
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, file, string(body), "blank lines are sent: the server counts them too")
		_, _ = io.WriteString(w, `{"index":0,"job":{"jobId":"j0"}}
{"index":1,"problem":{"detail":"bad","errors":[{"location":"#/a","message":"is 2"}]}}
{"index":2,"job":{"jobId":"j2"}}
{"index":3,"job":{"jobId":"j3"}}
{"done":true,"accepted":3,"refused":1}
`)
	})
	var seen results
	total, err := c.SubmitEach(t.Context(), NewUpload(strings.NewReader(file)), seen.see)
	require.NoError(t, err)
	require.Equal(t, Total{Accepted: 3, Refused: 1}, total)
	require.Equal(t, results{
		"line 1: job j0", "line 4: bad\n  #/a: is 2", "line 5: job j2", "line 7: job j3",
		`{"done":true,"accepted":3,"refused":1}`,
	}, seen)
}

func TestFaultsOfAnAtomicBatchNameLines(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		require.Equal(t, "true", r.URL.Query().Get("atomic"))
		refuse(w, 422, `{"status":422,"detail":"validation failed","errors":[
			{"location":"#/1/payload/x","message":"is odd"},{"location":"#/0","message":"is bad"},{"location":"query.x","message":"is not known"}]}`)
	})
	var seen results
	_, err := c.SubmitAll(t.Context(), NewUpload(strings.NewReader("\n{}\n\n{}\n")), seen.see)
	require.EqualError(t, err, "validation failed\n  line 4: #/payload/x: is odd\n  line 2: is bad\n  query.x: is not known")
	require.Empty(t, seen)
}

func TestAnAnswerThatIsNotWholeIsAnError(t *testing.T) {
	const first = `{"index":0,"job":{"jobId":"j0"}}` + "\n"
	for name, test := range map[string]struct{ answer, want string }{
		"cut":     {first, "the answer broke off after line 1: no answer from "},
		"garbage": {first + "<html>\n", "the answer broke off after line 1: not the answer that was expected"},
		"nothing": {first + "{}\n", "a line without index"},
		"stopped": {
			first + `{"done":false,"accepted":1,"refused":0,"problem":{"status":503,"detail":"the server is stopping"}}` + "\n",
			"stopped after line 1: the server is stopping\n  Jobs of later lines were not accepted.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, test.answer)
			})
			var seen results
			total, err := c.SubmitEach(t.Context(), NewUpload(strings.NewReader("{}\n{}\n")), seen.see)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, Total{Accepted: 1}, total)
		})
	}
}

func TestResultsComeWhileLinesStillGo(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		require.NoError(t, control.EnableFullDuplex())
		w.WriteHeader(http.StatusOK)
		first := make([]byte, 3)
		_, err := io.ReadFull(r.Body, first)
		require.NoError(t, err)
		_, _ = io.WriteString(w, `{"index":0,"job":{}}`+"\n")
		require.NoError(t, control.Flush())
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
		_, _ = io.WriteString(w, `{"index":1,"job":{}}`+"\n"+`{"done":true,"accepted":2,"refused":0}`+"\n")
	})
	reader, writer := io.Pipe()
	go func() { _, _ = io.WriteString(writer, "{}\n") }()
	total, err := c.SubmitEach(t.Context(), NewUpload(reader), func(result Result) error {
		if result.Line == 1 {
			go func() { // Only the first result sets the second line going.
				_, _ = io.WriteString(writer, "{}\n")
				_ = writer.Close()
			}()
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, Total{Accepted: 2}, total)
}

func TestAFileThatCannotBeReadIsTheErrorThatIsShown(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, test := range map[string]struct {
		answer, want string
	}{
		"before the answer": {want: "disk on fire"},
		"during the answer": {answer: `{"index":0,"job":{}}` + "\n", want: "the answer broke off after line 1: disk on fire\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fail := make(chan struct{})
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if test.answer != "" {
					require.NoError(t, http.NewResponseController(w).EnableFullDuplex())
					_, _ = io.WriteString(w, test.answer)
					require.NoError(t, http.NewResponseController(w).Flush())
				} else {
					close(fail)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			})
			source := io.MultiReader(strings.NewReader("{}\n"), failing{broken, fail})
			_, err := c.SubmitEach(t.Context(), NewUpload(source), func(Result) error {
				close(fail) // The client has the answer's beginning.
				return nil
			})
			require.ErrorIs(t, err, broken)
			require.True(t, strings.HasPrefix(err.Error(), test.want), err.Error())
		})
	}
}

// failing fails once it is told to.
type failing struct {
	err error
	now <-chan struct{}
}

func (f failing) Read([]byte) (int, error) {
	<-f.now
	return 0, f.err
}

func TestLinesOfAnyLengthPassThroughAFixedBuffer(t *testing.T) {
	blank := strings.Repeat(" ", 3*uploadBuffer)
	source := blank + "\n" + strings.Repeat("x", 5*uploadBuffer) + "\n" + blank + "y" + blank + "\nz"
	upload := NewUpload(strings.NewReader(source))
	sent, err := io.ReadAll(upload)
	require.NoError(t, err)
	require.Equal(t, source, string(sent))
	items, bytes := upload.Sent()
	require.Equal(t, 3, items)
	require.EqualValues(t, len(source), bytes)
	require.Equal(t, []int{2, 3, 4}, []int{upload.line(0), upload.line(1), upload.line(2)})
	upload.settled(2)
	require.Len(t, upload.skips, 1)
}

// echo accepts every line that is not blank, and answers while further ones come in.
func echo(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex()
	lines := bufio.NewScanner(r.Body)
	index := 0
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		_, _ = fmt.Fprintf(w, `{"index":%d,"job":{"jobId":"j"}}`+"\n", index)
		if index++; index%500 == 0 {
			_ = control.Flush()
		}
	}
	_, _ = fmt.Fprintf(w, `{"done":true,"accepted":%d,"refused":0}`+"\n", index)
}

// repeated is so many copies of a text.
type repeated struct {
	text  string
	times int
	rest  string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.times == 0 {
			return 0, io.EOF
		}
		r.times--
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestMemoryDoesNotGrowWithABatch(t *testing.T) {
	const lines = 20_000
	c := serve(t, echo)
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	var first, most uint64
	upload := NewUpload(&repeated{text: `{"jobType":"ECHO","payload":"` + strings.Repeat("x", 1000) + "\"}\n\n", times: lines})
	total, err := c.SubmitEach(t.Context(), upload, func(result Result) error {
		if result.Line%4001 == 0 {
			most = max(most, heap())
			first = cmp.Or(first, most)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, Total{Accepted: lines}, total)
	require.Less(t, most, first+4<<20, "20 MB went through")
}

func TestAKeyStandsInTheHeaderIfOneCanCarryIt(t *testing.T) {
	var sent []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Values("Idempotency-Key")
		_, _ = io.WriteString(w, "{}")
	})
	for key, want := range map[string][]string{
		"":          nil,
		"order-1":   {"order-1"},
		"größer":    {"größer"},
		` spaced "`: {`" spaced \""`},
		`"quoted"`:  {`"\"quoted\""`},
		`"größer`:   nil,
		"two\nrows": nil,
	} {
		_, err := c.Post(Keyed(t.Context(), key), "/jobs", nil, []byte("{}"))
		require.NoError(t, err)
		require.Equal(t, want, sent, key)
	}
}
