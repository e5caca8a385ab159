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
	"unicode"
)

// written are addresses as in the payload: one, several separated by commas, or a
// list. Each may have a name: "Ada Lovelace <ada@example.com>".
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

// parse reads addresses. Its errors have the number of an address and not its text:
// people who may not see the payload can see errors. The errors of net/mail quote.
func (w written) parse() (addresses, error) {
	var all addresses
	for _, list := range w {
		if strings.TrimSpace(list) == "" {
			continue
		}
		parsed, err := mail.ParseAddressList(list)
		if err != nil {
			return nil, fmt.Errorf("address %d is not of the form name@example.com or \"A Name\" <name@example.com>; "+
				"separate addresses by commas", len(all)+1+before(list))
		}
		for i, address := range parsed {
			if strings.ContainsFunc(address.Address, unicode.IsControl) {
				return nil, fmt.Errorf("address %d holds a control character", len(all)+1+i)
			}
		}
		all = append(all, parsed...)
	}
	return all, nil
}

// before counts the addresses before the first invalid one. It reads each only once.
func before(list string) int {
	count := 0
	for list != "" {
		end := firstEnd(list)
		if strings.Trim(list[:end], " \t") != "" {
			parsed, err := mail.ParseAddressList(list[:end])
			if err != nil {
				break
			}
			count += len(parsed)
		}
		list = strings.TrimPrefix(list[end:], ",")
	}
	return count
}

// firstEnd is where the first address or group of a list ends, in bytes: at a comma
// that is not in a quoted name, a comment or a group ("Crew: ada@example.com, bob@example.com;").
func firstEnd(list string) int {
	var quoted, literal, group bool
	comments := 0 // they nest
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\':
			i++
		case c == '(' && !quoted:
			comments++
		case c == ')' && comments > 0:
			comments--
		case comments > 0:
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == ']': // around an IP address, which may contain colons
			literal = c == '['
		case literal:
		case c == ':', c == ';':
			group = c == ':'
		case c == ',' && !group:
			return i
		}
	}
	return len(list)
}

// String is the list in a header.
func (a addresses) String() string {
	texts := make([]string, len(a))
	for i, address := range a {
		texts[i] = address.String()
	}
	return strings.Join(texts, ", ")
}

// people are the addresses of a letter, besides the sender.
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

// mailbox is an address in SMTP's form (RFC 5321, section 4.1.2). It quotes the part
// before the @ if necessary: otherwise a ">" or a space would end the address, and the
// rest would become parameters of the command.
func mailbox(address string) string {
	path := (&mail.Address{Address: address}).String()
	return strings.TrimSuffix(strings.TrimPrefix(path, "<"), ">")
}

// recipients are the addresses to send to, without duplicates.
func (p people) recipients() []string {
	var once []string
	known := make(map[string]bool)
	for _, address := range slices.Concat(p.to, p.cc, p.bcc) {
		if !known[address.Address] {
			known[address.Address] = true
			once = append(once, address.Address)
		}
	}
	return once
}

// refused adds the step to the error, and removes the recipients from the server's
// answer: people who may not see the payload can see errors.
func (l letter) refused(step string, err error) error {
	if answer := new(textproto.Error); errors.As(err, &answer) {
		answer.Msg = l.blank(answer.Msg)
	} else if odd := textproto.ProtocolError(""); errors.As(err, &odd) {
		err = textproto.ProtocolError(l.blank(string(odd)))
	}
	return fmt.Errorf("%s: %w", step, err)
}

// blank replaces the recipients in a text.
func (l letter) blank(text string) string {
	quoted := make([]string, 0, 2*len(l.recipients))
	for _, recipient := range l.recipients {
		quoted = append(quoted, regexp.QuoteMeta(recipient), regexp.QuoteMeta(mailbox(recipient)))
	}
	recipients, err := regexp.Compile("(?i)" + strings.Join(quoted, "|"))
	if err != nil {
		return "…"
	}
	recipients.Longest() // one may begin like another
	return recipients.ReplaceAllString(text, "…")
}
