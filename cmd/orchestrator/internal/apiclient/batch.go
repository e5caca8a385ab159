package apiclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const mediaLines = "application/x-ndjson"

// Result is the result of one submission of a batch. If Line is 0, it is the last
// line of the answer.
type Result struct {
	// Answer is the line of the server's answer.
	Answer Answer
	// Line is the line of the submission in the upload, from 1.
	Line int
	// Problem says why the job was refused; nil for an accepted one.
	Problem *Problem
}

// Total says how a batch ended.
type Total struct{ Accepted, Refused int }

// BrokenOffError says that the answer to a batch ended too soon, or that the context
// ended before it.
type BrokenOffError struct {
	// Line is the last one with a known result.
	Line int
	// Err is why; the cause of the context's end if that is the reason.
	Err error
}

func (e *BrokenOffError) Error() string {
	return fmt.Sprintf("the answer broke off after line %d: %v\n"+
		"  Jobs of later lines may have been accepted. If every line has an idempotencyKey, you can safely send all of them again.", e.Line, e.Err)
}

func (e *BrokenOffError) Unwrap() error { return e.Err }

// StoppedError says that the server stopped reading in the middle of a batch.
type StoppedError struct {
	// Line is the last one that the server answered.
	Line    int
	Problem *Problem
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("stopped after line %d: %v\n  Jobs of later lines were not accepted.", e.Line, e.Problem)
}

func (e *StoppedError) Unwrap() error { return e.Problem }

// answerLine is one line of the answer to a batch. The last one has no index.
type answerLine struct {
	Index   *int        `json:"index"`
	Problem *v1.Problem `json:"problem"`
	Done    bool        `json:"done"`
}

// SubmitEach submits every line on its own. It calls see with each result as it
// comes, in the order of the lines, while later lines are still being sent. It stops
// when see returns an error. Memory does not grow with the answer.
func (c *Client) SubmitEach(ctx context.Context, upload *Upload, see func(Result) error) (Total, error) {
	return c.submitLines(ctx, upload, false, see)
}

// SubmitAll submits all lines or none, and calls see with the results if all are
// accepted. Otherwise it returns a Problem whose mistakes name the lines.
func (c *Client) SubmitAll(ctx context.Context, upload *Upload, see func(Result) error) (Total, error) {
	return c.submitLines(ctx, upload, true, see)
}

func (c *Client) submitLines(ctx context.Context, upload *Upload, atomic bool, see func(Result) error) (Total, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := url.Values{"atomic": {strconv.FormatBool(atomic)}}
	answer, err := c.send(ctx, http.MethodPost, "/jobs/batch", query, mediaLines, leaving(ctx, upload))
	if err != nil {
		var problem *Problem
		if errors.As(err, &problem) {
			upload.name(problem)
		} else if failure := upload.failure(); failure != nil {
			err = failure
		}
		return Total{}, err
	}
	defer func() { _ = answer.Body.Close() }()

	counted, line := Total{}, 0
	lines := bufio.NewReader(answer.Body)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			if sent, _ := upload.Sent(); atomic && errors.Is(err, io.EOF) && counted.Accepted == sent {
				return counted, nil
			}
			return counted, c.brokenOff(ctx, upload, line, err)
		}
		result, last, err := readResult(text, upload)
		if err != nil {
			return counted, &BrokenOffError{Line: line, Err: err}
		}
		if last {
			return counted, conclude(result, line, see)
		}
		if line = result.Line; result.Problem == nil {
			counted.Accepted++
		} else {
			counted.Refused++
		}
		if err := see(result); err != nil {
			return counted, err
		}
	}
}

// leaving reads the source until the context ends. The caller does not have to wait
// for a pending read of a terminal.
func leaving(ctx context.Context, source io.Reader) io.Reader {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(writer, source)
		_ = writer.CloseWithError(err)
	}()
	return reader
}

// conclude takes the last line of an answer.
func conclude(last Result, line int, see func(Result) error) error {
	if last.Problem == nil {
		return see(last)
	}
	stopped := &StoppedError{Line: line, Problem: last.Problem}
	last.Problem = nil // It is not that of a submission.
	if err := see(last); err != nil {
		return err
	}
	return stopped
}

// readResult decodes a line of an answer. last reports whether it is the last one,
// which belongs to no line of the upload.
func readResult(text []byte, upload *Upload) (result Result, last bool, err error) {
	var read answerLine
	if err := json.Unmarshal(text, &read); err != nil {
		return Result{}, false, fmt.Errorf("not the answer that was expected: %w", err)
	}
	result = Result{Answer: Answer(bytes.TrimRight(text, "\n"))}
	if read.Problem != nil {
		result.Problem = &Problem{Problem: *read.Problem}
	}
	switch {
	case read.Index != nil:
		result.Line = upload.line(*read.Index)
		upload.settled(*read.Index)
	case !read.Done && read.Problem == nil:
		return Result{}, false, errors.New("not the answer that was expected: a line without index")
	}
	return result, read.Index == nil, nil
}

func (c *Client) brokenOff(ctx context.Context, upload *Upload, line int, err error) error {
	if failure := upload.failure(); failure != nil {
		return &BrokenOffError{Line: line, Err: failure}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &BrokenOffError{Line: line, Err: c.unreachable(ctx, err)}
}

// name replaces the indexes of items in a problem with numbers of lines.
func (u *Upload) name(problem *Problem) {
	for i, mistake := range problem.Errors {
		index, within, _ := strings.Cut(strings.TrimPrefix(mistake.Location, "#/"), "/")
		n, err := strconv.Atoi(index)
		if !strings.HasPrefix(mistake.Location, "#/") || err != nil || n < 0 {
			continue
		}
		location := "line " + strconv.Itoa(u.line(n))
		if within != "" {
			location += ": #/" + within
		}
		problem.Errors[i].Location = location
	}
}
