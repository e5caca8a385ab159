package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// talk is a stream of submissions with a stream of answers.
type talk struct {
	t       *testing.T
	send    *io.PipeWriter
	answers *bufio.Scanner
	leave   context.CancelFunc
}

// answer is any line of the stream of answers.
type answer struct {
	Index   *int
	Job     *struct{ JobID string }
	Problem *struct {
		Status int
		Detail string
	}
	Done              *bool
	Accepted, Refused int
}

// talk opens a stream. The server begins its answer before the client sends anything.
func (s *served) talk(t *testing.T) *talk {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	body, send := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/jobs/batch?atomic=false", body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := s.Client().Do(request)
	require.NoError(t, err)
	t.Cleanup(func() {
		leave()
		_ = send.Close()
		_ = response.Body.Close()
	})
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, "application/x-ndjson", response.Header.Get("Content-Type"))
	return &talk{t: t, send: send, answers: bufio.NewScanner(response.Body), leave: leave}
}

func (c *talk) write(text string) {
	c.t.Helper()
	_, err := io.WriteString(c.send, text)
	require.NoError(c.t, err)
}

func (c *talk) read() answer {
	c.t.Helper()
	require.True(c.t, c.answers.Scan(), "the answer ends: %v", c.answers.Err())
	var a answer
	require.NoError(c.t, json.Unmarshal(c.answers.Bytes(), &a))
	return a
}

// requireEnd reads the last line and returns it.
func (c *talk) requireEnd(done bool) answer {
	c.t.Helper()
	a := c.read()
	require.NotNil(c.t, a.Done, c.answers.Text())
	require.Equal(c.t, done, *a.Done, c.answers.Text())
	require.False(c.t, c.answers.Scan(), "nothing follows the last line")
	require.NoError(c.t, c.answers.Err())
	return a
}

func TestLinesAreAnsweredWhileOthersStillCome(t *testing.T) {
	t.Parallel()
	l := newLedger()
	// A stream lasts longer than the server's deadlines.
	c := serve(t, l, func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = outlived, outlived }).talk(t)
	began := time.Now()
	sent := 0
	for ; time.Since(began) < outlived*3/2; time.Sleep(outlived / 100) { // the client's pace
		c.write(minimal + "\n")
		a := c.read()
		require.Equal(t, sent, *a.Index)
		require.NotNil(t, a.Job)
		sent++
	}
	c.write(`{}`) // the last line needs no end
	require.NoError(t, c.send.Close())
	require.Equal(t, 422, c.read().Problem.Status)
	end := c.requireEnd(true)
	require.Equal(t, sent, end.Accepted)
	require.Equal(t, 1, end.Refused)
	require.Len(t, l.submitted, sent)
}

func TestManyLinesAreStoredInGroupsInTheOrderSent(t *testing.T) {
	l := newLedger()
	l.gate, l.submitting = make(chan struct{}), make(chan struct{})
	c := serve(t, l).talk(t)
	c.write(minimal + "\n")
	<-l.submitting
	// While the first job is stored, more lines arrive than fit into a group.
	const more = 1200
	go func() {
		for i := range more {
			_, _ = fmt.Fprintf(c.send, `{"jobType":"A","tenant":"t","idempotencyKey":"%d"}`+"\n", i)
		}
		_ = c.send.Close()
	}()
	l.gate <- struct{}{}
	require.Zero(t, *c.read().Index)
	most := 0
	for stored := 0; stored < more; {
		<-l.submitting
		group := 1
		for quiet := time.After(50 * time.Millisecond); quiet != nil; {
			select {
			case <-l.submitting:
				group++
			case <-quiet:
				quiet = nil
			}
		}
		for range group {
			l.gate <- struct{}{}
		}
		most = max(most, group)
		stored += group
	}
	require.LessOrEqual(t, most, 500)
	require.Greater(t, most, 1, "they are stored together")
	for i := range more {
		require.Equal(t, i+1, *c.read().Index)
	}
	require.Equal(t, more+1, c.requireEnd(true).Accepted)
	require.Len(t, l.submitted, more+1)
}

func TestTheFirstLineWithAKeyWins(t *testing.T) {
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, `{"jobType":"A","payload":%d,"idempotencyKey":"k"}`+"\n", i)
	}
	l := newLedger()
	c := serve(t, l).talk(t)
	c.write(lines.String())
	require.NoError(t, c.send.Close())
	require.NotNil(t, c.read().Job)
	for range 399 {
		require.Equal(t, 422, c.read().Problem.Status)
	}
	c.requireEnd(true)
	require.Equal(t, "0", string(l.submitted[0].Payload))
}

func TestALineThatIsTooLongIsRefusedAlone(t *testing.T) {
	l := newLedger()
	c := serve(t, l).talk(t)
	fits := `{"jobType":"A","payload":"` + strings.Repeat("x", 4096-28) + `"}`
	go func() {
		_, _ = io.WriteString(c.send, fits+"\r\n"+fits[:30]+"x"+fits[30:]+"\n"+`{"jobType":"A"}`+strings.Repeat(" ", 300_000)+"1\n"+minimal)
		_ = c.send.Close()
	}()
	require.NotNil(t, c.read().Job)
	require.Equal(t, 413, c.read().Problem.Status)
	require.Equal(t, 413, c.read().Problem.Status, "what comes after much white space is not overlooked")
	require.NotNil(t, c.read().Job)
	c.requireEnd(true)
}

func TestALineThatBeginsWithMuchWhiteSpaceIsNotOverlooked(t *testing.T) {
	c := serve(t, newLedger()).talk(t)
	go func() {
		_, _ = io.WriteString(c.send, strings.Repeat(" ", 300_000)+minimal+"\n \n"+minimal)
		_ = c.send.Close()
	}()
	require.Equal(t, 413, c.read().Problem.Status)
	require.NotNil(t, c.read().Job)
	c.requireEnd(true)
}

func TestAClientThatSendsNothingIsCutOff(t *testing.T) {
	t.Parallel()
	for name, dribble := range map[string]bool{"silent": false, "a byte now and then": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			c := serve(t, l, func(s *http.Server) { s.ReadTimeout = outlived }).talk(t)
			c.write(minimal + "\n" + minimal[:5])
			require.NotNil(t, c.read().Job)
			if dribble {
				go func() {
					for _, b := range minimal[5:] {
						time.Sleep(outlived / 10) // the client's pace
						if _, err := c.send.Write([]byte{byte(b)}); err != nil {
							return
						}
					}
				}()
			}
			end := c.requireEnd(false)
			require.Equal(t, 408, end.Problem.Status)
			require.Equal(t, 1, end.Accepted)
			require.Len(t, l.submitted, 1)
		})
	}
}

func TestAStreamDoesNotHoldUpTheServerWhenItStops(t *testing.T) {
	server := serve(t, newLedger())
	silent, busy := server.talk(t), server.talk(t)
	go func() {
		for {
			if _, err := io.WriteString(busy.send, minimal+"\n"); err != nil {
				return
			}
		}
	}()
	require.NotNil(t, busy.read().Job)
	server.stop()
	require.Equal(t, 503, silent.requireEnd(false).Problem.Status)
	for last := busy.read(); ; last = busy.read() {
		if last.Done != nil {
			require.False(t, *last.Done)
			require.Equal(t, 503, last.Problem.Status)
			break
		}
	}
}

func TestOnlyWholeLinesOfAClientThatLeavesCount(t *testing.T) {
	l := newLedger()
	server := serve(t, l)
	c := server.talk(t)
	c.write(minimal + "\n" + minimal)
	require.NotNil(t, c.read().Job)
	c.leave()
	server.Close() // waits until the request has ended
	require.Len(t, l.submitted, 1)
}

func TestAClientThatExpects100ContinueGetsIt(t *testing.T) {
	connection := serve(t, newLedger()).dial(t, "Expect: 100-continue")
	require.NoError(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	answers := bufio.NewReader(connection)
	line, err := answers.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	_, err = io.WriteString(connection, minimal+"\n")
	require.NoError(t, err)
	for !strings.Contains(line, `"job":`) {
		line, err = answers.ReadString('\n')
		require.NoError(t, err)
	}
}

// dial sends the header of a stream over a bare connection.
func (s *served) dial(t *testing.T, headers ...string) *net.TCPConn {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = io.WriteString(connection, "POST /jobs/batch?atomic=false HTTP/1.1\r\nHost: a\r\n"+
		"Content-Type: application/x-ndjson\r\nContent-Length: 1000000000\r\n"+strings.Join(append(headers, "", ""), "\r\n"))
	require.NoError(t, err)
	return connection.(*net.TCPConn)
}

func TestNoMoreIsReadThanCanBeStored(t *testing.T) {
	l := newLedger()
	const most = 100 << 20
	// Nobody receives what it tells of, and groups may follow until the server stops.
	l.gate, l.submitting = make(chan struct{}), make(chan struct{}, most)
	connection := serve(t, l).dial(t)
	require.NoError(t, connection.SetWriteDeadline(time.Now().Add(time.Second)))
	sent, err := io.Copy(connection, io.LimitReader(repeated(minimal+"\n"), most))
	require.ErrorContains(t, err, "timeout", "the client has to wait")
	require.Less(t, sent, int64(50<<20), "the rest is in the buffers of the connection")
	close(l.gate)
}

func TestAClientThatReadsNoAnswersIsDisconnected(t *testing.T) {
	l := newLedger()
	server := serve(t, l, func(s *http.Server) {
		s.WriteTimeout = 100 * time.Millisecond
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			// The kernel would keep megabytes of answers, and a busy machine is slow to make them.
			assert.NoError(t, c.(*net.TCPConn).SetWriteBuffer(32<<10))
			return ctx
		}
	})
	connection := server.dial(t)
	// A smaller buffer makes the kernel drop acknowledgments of our own lines, and both
	// sides wait.
	require.NoError(t, connection.SetReadBuffer(32<<10))
	require.NoError(t, connection.SetWriteDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(connection, repeated(minimal+"\n"))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server holds on to the client")
	require.NotErrorIs(t, err, io.EOF)
}

// repeated is a text without end that repeats.
type repeater struct{ text, rest string }

func repeated(text string) io.Reader { return &repeater{text: strings.Repeat(text, 100)} }

func (r *repeater) Read(into []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.text
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestAConnectionCanBeUsedAgainAfterAStream(t *testing.T) {
	server := serve(t, newLedger(), func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = outlived, outlived })
	c := server.talk(t)
	c.write(minimal)
	require.NoError(t, c.send.Close())
	require.NotNil(t, c.read().Job)
	c.requireEnd(true)

	reused := false
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/healthz", nil)
	require.NoError(t, err)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.True(t, reused)
}

// The rest of a body must never be read as a request.
func TestTheRestOfABrokenStreamIsNotReadAsARequest(t *testing.T) {
	l := newLedger()
	server := serve(t, l)
	l.gate, l.submitting = make(chan struct{}), make(chan struct{})
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	const smuggled = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
	_, err = io.WriteString(connection, "POST /jobs/batch?atomic=false HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-ndjson\r\n"+
		"Content-Length: 100000\r\n\r\n"+minimal+"\n")
	require.NoError(t, err)
	<-l.submitting
	server.stop()
	l.gate <- struct{}{}
	answers := bufio.NewReader(connection)
	for line := ""; !strings.Contains(line, `"done":false`); {
		line, err = answers.ReadString('\n')
		require.NoError(t, err)
	}
	_, _ = io.WriteString(connection, smuggled)
	require.NoError(t, connection.SetReadDeadline(time.Now().Add(time.Minute)))
	rest, err := io.ReadAll(answers)
	require.NoError(t, err, "the connection is closed")
	require.NotContains(t, string(rest), "HTTP/1.1")
	require.Len(t, l.submitted, 1)
}

func TestAnOutageIsReportedForEveryLine(t *testing.T) {
	l := newLedger()
	l.refuses = map[string]error{"LOST": fmt.Errorf("submit: %w", job.ErrUnavailable)}
	c := serve(t, l).talk(t)
	c.write(`{"jobType":"LOST"}` + "\n" + minimal + "\n" + `{"jobType":"LOST"}`)
	require.NoError(t, c.send.Close())
	require.Equal(t, 503, c.read().Problem.Status)
	require.NotNil(t, c.read().Job)
	require.Equal(t, 503, c.read().Problem.Status)
	end := c.requireEnd(true)
	require.Equal(t, []int{1, 2}, []int{end.Accepted, end.Refused})
}
