package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
)

// written are addresses as a payload has them: one, several with commas between them,
// or a list. Each may have a name: "Ada Lovelace <ada@example.com>".
type written []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *written) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*w = written{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

type addresses []*mail.Address

// parse reads addresses. Its errors count them and do not show them: errors are shown
// to those who may not see the payload. Those of net/mail quote what they are about.
func (w written) parse() (addresses, error) {
	var all addresses
	for _, list := range w {
		if strings.TrimSpace(list) == "" {
			continue
		}
		parsed, err := mail.ParseAddressList(list)
		if err != nil {
			return nil, fmt.Errorf("address %d is written neither like name@example.com nor like \"A Name\" <name@example.com>; "+
				"addresses are parted by commas", len(all)+1+before(list))
		}
		all = append(all, parsed...)
	}
	return all, nil
}

// before counts the addresses before the first that cannot be read.
func before(list string) int {
	const longest = 1000 // in bytes, so that the search ends
	count, start := 0, 0
	for i, r := range list {
		if i-start > longest {
			break
		}
		if r != ',' { // which may also be within quotation marks
			continue
		}
		if parsed, err := mail.ParseAddressList(list[start:i]); err == nil {
			count, start = count+len(parsed), i+1
		}
	}
	return count
}

// String is the list as it stands in a header.
func (a addresses) String() string {
	texts := make([]string, len(a))
	for i, address := range a {
		texts[i] = address.String()
	}
	return strings.Join(texts, ", ")
}

// people are those whom a letter has to do with, beside its sender.
type people struct{ to, cc, bcc, replyTo addresses }

func (e emailArgs) people() (p people, err error) {
	for _, member := range []struct {
		name    string
		written written
		parsed  *addresses
	}{{"to", e.To, &p.to}, {"cc", e.CC, &p.cc}, {"bcc", e.BCC, &p.bcc}, {"replyTo", e.ReplyTo, &p.replyTo}} {
		if *member.parsed, err = member.written.parse(); err != nil {
			return people{}, fmt.Errorf("%s: %w", member.name, err)
		}
	}
	return p, nil
}

// recipients are those whom the server is told, each once.
func (p people) recipients() []string {
	var once []string
	for _, address := range slices.Concat(p.to, p.cc, p.bcc) {
		if !slices.Contains(once, address.Address) {
			once = append(once, address.Address)
		}
	}
	return once
}

// refused says at which step. The recipients are blanked out of what the server has
// sent, however it writes them: errors are shown to those who may not see the payload.
func (l letter) refused(step string, err error) error {
	if answer := new(textproto.Error); errors.As(err, &answer) {
		answer.Msg = l.blank(answer.Msg)
	} else if odd := textproto.ProtocolError(""); errors.As(err, &odd) {
		err = textproto.ProtocolError(l.blank(string(odd)))
	}
	return fmt.Errorf("%s: %w", step, err)
}

// blank is a text without recipients.
func (l letter) blank(text string) string {
	quoted := make([]string, len(l.recipients))
	for i, recipient := range l.recipients {
		quoted[i] = regexp.QuoteMeta(recipient)
	}
	recipients, err := regexp.Compile("(?i)" + strings.Join(quoted, "|"))
	if err != nil {
		return "…"
	}
	recipients.Longest() // where one begins like another
	return recipients.ReplaceAllString(text, "…")
}
