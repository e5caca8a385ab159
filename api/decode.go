package api

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	// maxErrors bounds the answer to a body in which nothing is right.
	maxErrors = 20
	// maxEchoed bounds what is repeated of the name of an unknown member.
	maxEchoed = 100
)

// decode reads a body that has passed screen. It reports every mistake, not
// only the first. Unlike encoding/json it minds the case of names, and
// refuses members that are unknown or there twice.
func decode(body []byte) (request, []v1.Mistake) {
	d := decoder{seen: make([]string, 0, len(members))}
	body = bytes.Trim(body, " \t\r\n")
	if body[0] != '{' {
		d.refuse(errors.New("must be an object"))
		return d.request, d.errs
	}
	eachMember(body, d.member)
	if !d.has("jobType") {
		d.refuse(errors.New("is required"), "jobType")
	}
	if d.request.runAt != nil && d.request.delay != nil {
		d.refuse(errors.New("excludes runAt"), "delay")
	}
	return d.request, d.errs
}

type decoder struct {
	request request
	// seen holds the known members that were there, of which there are few.
	seen []string
	errs []v1.Mistake
}

func (d *decoder) has(name string) bool { return slices.Contains(d.seen, name) }

func (d *decoder) member(quoted, value []byte) {
	name, err := text(quoted)
	read, known := members[name]
	switch {
	case err != nil:
		d.refuse(errors.New("cannot be read"))
	case !known:
		d.refuse(errors.New("is not known"), name)
	case d.has(name):
		d.refuse(errors.New("is there twice"), name)
	default:
		d.seen = append(d.seen, name)
		if err := read(&d.request, value); err != nil {
			d.refuseValue(err, name)
		}
	}
}

func (d *decoder) refuseValue(err error, name string) {
	var inside *itemError
	if errors.As(err, &inside) {
		d.refuse(inside.err, name, inside.index)
	} else {
		d.refuse(err, name)
	}
}

func (d *decoder) refuse(err error, place ...string) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, at(pointer(place...), err.Error()))
	}
}

// pointer is the JSON Pointer to a place in the body, as a URI fragment
// (RFC 6901, section 6).
func pointer(place ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var path strings.Builder
	for _, step := range place {
		path.WriteString("/" + escape.Replace(shortened(step)))
	}
	return "#" + (&url.URL{Fragment: path.String()}).EscapedFragment()
}

func shortened(name string) string {
	if runes := []rune(name); len(runes) > maxEchoed {
		return string(runes[:maxEchoed]) + "…"
	}
	return name
}
