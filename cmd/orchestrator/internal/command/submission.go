package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

// submissionFlags has a flag for each member of a submission. Only the server checks
// their values.
type submissionFlags struct {
	payload string
	flags   *pflag.FlagSet
	// values are pointers to the values of the flags of members.
	values []any
}

// members are the flags of a submission's members, except the job type, which is an
// argument, and the payload.
var members = []struct {
	flag, member string
	add          func(flags *pflag.FlagSet, name, usage string) (value any)
	usage        string
}{
	{"key", "idempotencyKey", addText, "idempotency `key`: a second submission with it finds the first job"},
	{"priority", "priority", addNumber, "higher is more urgent"},
	{"run-at", "runAt", addText, "not before this `time` (RFC 3339)"},
	{"delay", "delay", addText, "not before this `time` has passed, such as 90s or 1h30m"},
	{"max-attempts", "maxAttempts", addNumber, "how often a handler may start; by default the job type's number"},
	{"timeout", "timeout", addText, "limit of each attempt, a `duration`; by default the job type's"},
	{"tenant", "tenant", addText, "whose job it is"},
	{"tag", "tags", addTexts, "a `word` to find the job by; repeatable"},
	{"hold", "hold", addSwitch, "hold the job until you release it"},
	{"concurrency-key", "concurrencyKey", addText, "a `key`: jobs with it share its limit; by default the job type's"},
	{"concurrency-limit", "concurrencyLimit", addNumber, "how many jobs of the key may run; by default that of the job type or the key's class"},
	{"on-conflict", "onConflict", addText, "`what` to do if so many run: queue, cancel_newcomer or cancel_oldest"},
	{"fairness-key", "fairnessKey", addText, "a `key`: waiting jobs run in turns of their keys"},
	{"expires-at", "expiresAt", addText, "cancel the job if it has not started by this `time` (RFC 3339)"},
	{"ttl", "ttl", addText, "cancel the job if it has not started when this `time` has passed, such as 1h"},
	{"unique-for", "uniqueFor", addText, "make no other job like it for this `time`, such as 1h"},
	{"unique-while", "uniqueWhile", addText, "open: make no other job like it `while` it waits or runs"},
	{"unique-by", "uniqueBy", addTexts, "a JSON `pointer`, such as /customerId, to what must be equal in payloads that are alike; repeatable"},
	{"callback-url", "callbackUrl", addText, "tell this `URL` when the job has ended; by default the job type's"},
}

func addText(f *pflag.FlagSet, name, usage string) any   { return f.String(name, "", usage) }
func addTexts(f *pflag.FlagSet, name, usage string) any  { return f.StringArray(name, nil, usage) }
func addNumber(f *pflag.FlagSet, name, usage string) any { return f.Int(name, 0, usage) }
func addSwitch(f *pflag.FlagSet, name, usage string) any { return f.Bool(name, false, usage) }

// register adds all flags but those named.
func (s *submissionFlags) register(c *cobra.Command, except ...string) {
	s.flags = c.Flags()
	s.flags.StringVar(&s.payload, "payload", "", "the payload: `JSON`, @file, or - for standard input")
	for _, m := range members {
		if slices.Contains(except, m.flag) {
			s.values = append(s.values, nil)
			continue
		}
		s.values = append(s.values, m.add(s.flags, m.flag, m.usage))
	}
}

// given returns the first flag that was set; empty for none.
func (s *submissionFlags) given() string {
	if s.flags.Changed("payload") {
		return "payload"
	}
	for _, m := range members {
		if s.flags.Changed(m.flag) {
			return m.flag
		}
	}
	return ""
}

// key is the idempotency key; empty for none.
func (s *submissionFlags) key() string {
	for i, m := range members {
		if value, ok := s.values[i].(*string); ok && m.member == "idempotencyKey" {
			return *value
		}
	}
	return ""
}

// body returns the submission as JSON. It keeps the payload byte for byte, which an
// encoder would not.
func (s *submissionFlags) body(ctx context.Context, jobType string, stdin io.Reader) ([]byte, error) {
	encoded, err := json.Marshal(jobType)
	if err != nil {
		return nil, err
	}
	return s.complete(ctx, append([]byte(`{"jobType":`), encoded...), stdin)
}

// changes returns the members that were given as a JSON object.
func (s *submissionFlags) changes(ctx context.Context, stdin io.Reader) ([]byte, error) {
	return s.complete(ctx, []byte("{"), stdin)
}

// complete adds the members that were given, and ends the object.
func (s *submissionFlags) complete(ctx context.Context, body []byte, stdin io.Reader) ([]byte, error) {
	add := func(member string, value []byte) {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(fmt.Appendf(body, "%q:", member), value...)
	}
	if s.flags.Changed("payload") {
		payload, err := ReadPayload(ctx, s.payload, stdin)
		if err != nil {
			return nil, fmt.Errorf("--payload: %w", err)
		}
		add("payload", payload)
	}
	for i, m := range members {
		if !s.flags.Changed(m.flag) {
			continue
		}
		encoded, err := json.Marshal(s.values[i])
		if err != nil {
			return nil, err
		}
		add(m.member, encoded)
	}
	return append(body, '}'), nil
}

// ReadPayload reads JSON byte for byte from the text itself, from @file, or from
// standard input for "-". Invalid JSON is a UsageError.
func ReadPayload(ctx context.Context, source string, stdin io.Reader) ([]byte, error) {
	text, err := []byte(source), error(nil)
	switch path, isFile := strings.CutPrefix(source, "@"); {
	case source == "-":
		text, err = readAll(ctx, stdin)
	case isFile:
		text, err = os.ReadFile(path)
	}
	// Some editors begin files with it; it is not JSON.
	text = bytes.TrimPrefix(text, []byte(apiclient.ByteOrderMark))
	if err != nil {
		return nil, err
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, usage("it is empty; write JSON, such as null or {}")
	}
	if !utf8.Valid(text) {
		return nil, usage("it is not UTF-8, which JSON must be")
	}
	if !json.Valid(text) {
		var whole any
		err := json.Unmarshal(text, &whole)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			err = fmt.Errorf("%w, at byte %d", err, syntax.Offset)
		}
		return nil, UsageError{fmt.Errorf("not JSON: %w (a text needs quotes of its own: '\"text\"')", err)}
	}
	return text, nil
}

// readAll reads to the end, or until ctx ends: a read from a terminal cannot be
// interrupted.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		text, err := io.ReadAll(r)
		read <- outcome{text, err}
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
