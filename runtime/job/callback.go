package job

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// DeliveryType is the type of the jobs that announce ends to callback URLs. Only the
// follower makes such jobs: what they deliver is signed.
const DeliveryType = "WEBHOOK"

// MaxCallbackURL bounds a callback URL, in bytes.
const MaxCallbackURL = 2000

// MaxDelivered bounds the result and the progress in a delivery, in bytes each. Larger ones
// are left out.
const MaxDelivered = 64 << 10

// CheckCallbackURL reports what is wrong with a callback URL. It does not repeat the URL, whose
// path is often a secret.
func CheckCallbackURL(text string) error {
	if len(text) > MaxCallbackURL {
		return fmt.Errorf("is longer than %d bytes", MaxCallbackURL)
	}
	target, err := url.Parse(text)
	switch {
	case err != nil, target.Scheme != "http" && target.Scheme != "https", target.Hostname() == "",
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }):
		return errors.New("must be an absolute http or https URL, such as https://example.com/hook")
	case target.User != nil:
		return errors.New("must not contain a user or a password")
	}
	if port := target.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("must have a port from 1 to 65535, or none")
		}
	}
	return nil
}

// Callback is an end to announce.
type Callback struct {
	Ended
	// Now is the job as it is now. If it was requeued meanwhile, it has not ended.
	Now View
	URL string
	// ResultOmitted says that the result is larger than MaxDelivered.
	ResultOmitted bool
}

// View returns the job as it was when it ended, as far as that is known.
func (c Callback) View() View {
	then := c.Now
	then.State, then.FinishedAt = c.State, &c.At
	if c.State != Succeeded {
		then.Result = nil // of a later attempt
	}
	return then
}

// DeliveryPlan is what the job of a delivery is made of.
type DeliveryPlan struct {
	// Type is DeliveryType as its handler has declared it; nil if no handler ever has.
	// Then nothing can be delivered.
	Type *TypeSpec
	// Rules give a delivery its gates.
	Rules *Rules
	// Cell is the cell whose job it is, if any.
	Cell Cell
}

// Delivered is what became of callbacks.
type Delivered struct {
	// Jobs have been made, of which some are Ready to be claimed, or Parked at a gate.
	Jobs          int
	Ready, Parked bool
	// Failed could not be made. They are kept, and tried again.
	Failed int
	// GivenUp could not be made for a day. They are kept, but not tried again.
	GivenUp int
	// Reason is why the last of them failed or was given up.
	Reason string
}
