package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/client"
)

// submissionFlags has a flag for each member of a submission. Only the server checks
// their values.
type submissionFlags struct {
	payload string
	flags   *pflag.FlagSet
}

// members are the flags of a submission's members, except the job type, which is an
// argument, and the payload.
var members = []struct {
	flag, member string
	read         func(*pflag.FlagSet, string) (any, error)
}{
	{"key", "idempotencyKey", asText},
	{"priority", "priority", asNumber},
	{"run-at", "runAt", asText},
	{"delay", "delay", asText},
	{"max-attempts", "maxAttempts", asNumber},
	{"timeout", "timeout", asText},
	{"tenant", "tenant", asText},
	{"tag", "tags", func(f *pflag.FlagSet, name string) (any, error) { return f.GetStringArray(name) }},
	{"hold", "hold", func(f *pflag.FlagSet, name string) (any, error) { return f.GetBool(name) }},
}

func asText(f *pflag.FlagSet, name string) (any, error)   { return f.GetString(name) }
func asNumber(f *pflag.FlagSet, name string) (any, error) { return f.GetInt(name) }

func (s *submissionFlags) register(c *cobra.Command) {
	flags := c.Flags()
	s.flags = flags
	flags.StringVar(&s.payload, "payload", "", "the payload: `JSON`, @file, or - for standard input")
	flags.String("key", "", "idempotency `key`: a second submission with it finds the first job")
	flags.Int("priority", 0, "higher is more urgent")
	flags.String("run-at", "", "not before this `time` (RFC 3339)")
	flags.String("delay", "", "not before this `time` has passed, such as 90s or 1h30m")
	flags.Int("max-attempts", 0, "how often a handler may start; by default the job type's number")
	flags.String("timeout", "", "limit of each attempt, a `duration`; by default the job type's")
	flags.String("tenant", "", "whose job it is")
	flags.StringArray("tag", nil, "a `word` to find the job by; repeatable")
	flags.Bool("hold", false, "hold the job until you release it")
	for _, m := range members {
		complete(c, m.flag, nothing)
	}
}

// given returns the first flag that was set; empty for none.
func (s *submissionFlags) given() string {
	names := []string{"payload"}
	for _, m := range members {
		names = append(names, m.flag)
	}
	for _, name := range names {
		if s.flags.Changed(name) {
			return name
		}
	}
	return ""
}

// body returns the submission as JSON. It keeps the payload byte for byte, which an
// encoder would not.
func (s *submissionFlags) body(ctx context.Context, jobType string, stdin io.Reader) ([]byte, error) {
	var body bytes.Buffer
	add := func(name string, value []byte) {
		if body.Len() > 1 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, "%q:%s", name, value)
	}
	body.WriteByte('{')
	encoded, err := json.Marshal(jobType)
	if err != nil {
		return nil, err
	}
	add("jobType", encoded)
	if s.flags.Changed("payload") {
		payload, err := ReadPayload(ctx, s.payload, stdin)
		if err != nil {
			return nil, fmt.Errorf("--payload: %w", err)
		}
		add("payload", payload)
	}
	for _, m := range members {
		if !s.flags.Changed(m.flag) {
			continue
		}
		value, err := m.read(s.flags, m.flag)
		if err != nil {
			return nil, err
		}
		if encoded, err = json.Marshal(value); err != nil {
			return nil, err
		}
		add(m.member, encoded)
	}
	body.WriteByte('}')
	return body.Bytes(), nil
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
	text = bytes.TrimPrefix(text, []byte(client.ByteOrderMark))
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
