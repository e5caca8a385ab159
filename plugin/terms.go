package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// Terms is an Option that says how jobs of the type share with others. It says where in
// the payload a job's keys are: each place is a JSON Pointer (RFC 6901), such as
// "/customer/id", to a string or a number. A job whose payload has no such value, or null
// there, has no key. What a submission says itself comes first.
type Terms struct {
	// ConcurrencyKey is the place of what a job uses. With the class customer and the
	// value 42, its key is customer:42. Jobs of a tenant with the same key share its
	// limit, whatever their types.
	ConcurrencyKey string
	// KeyClass is what concurrency keys begin with. It is required with ConcurrencyKey.
	KeyClass string
	// ConcurrencyLimit is how many jobs of the key may run when a job of this type
	// starts, itself included; 0 for the limit that operators have set for the class.
	ConcurrencyLimit int
	// OnConflict is what happens to a job if so many run; empty for what operators have
	// set for the class.
	OnConflict OnConflict
	// FairnessKey is the place of who takes a turn. Waiting jobs run in turns of their
	// fairness keys, however many jobs each has.
	FairnessKey string
}

// OnConflict is what happens to a job whose concurrency key is full.
type OnConflict string

// What happens to a job whose concurrency key is full.
const (
	// ConflictQueue: it waits.
	ConflictQueue OnConflict = "queue"
	// ConflictCancelNewcomer: it is canceled.
	ConflictCancelNewcomer OnConflict = "cancel_newcomer"
	// ConflictCancelOldest: the oldest running job of the key is canceled, and it takes
	// its place.
	ConflictCancelOldest OnConflict = "cancel_oldest"
)

// Bounds that the orchestrator checks too.
const (
	maxPlace            = 1000 // bytes
	maxKeyClass         = 100  // characters
	maxConcurrencyLimit = 100_000
)

var conflicts = map[OnConflict]handlerv1.Terms_OnConflict{
	"":                     handlerv1.Terms_ON_CONFLICT_UNSPECIFIED,
	ConflictQueue:          handlerv1.Terms_ON_CONFLICT_QUEUE,
	ConflictCancelNewcomer: handlerv1.Terms_ON_CONFLICT_CANCEL_NEWCOMER,
	ConflictCancelOldest:   handlerv1.Terms_ON_CONFLICT_CANCEL_OLDEST,
}

func (t Terms) set(h *Handler) {
	if err := t.check(); err != nil {
		h.reject("terms: %w", err)
		return
	}
	h.terms = &t
}

func (t Terms) check() error {
	_, known := conflicts[t.OnConflict]
	switch {
	case t == Terms{}:
		return errors.New("they name no key")
	case !isPlace(t.ConcurrencyKey):
		return fmt.Errorf("concurrency key %q is no JSON Pointer, such as /customer/id", t.ConcurrencyKey)
	case !isPlace(t.FairnessKey):
		return fmt.Errorf("fairness key %q is no JSON Pointer, such as /customer/id", t.FairnessKey)
	case t.ConcurrencyKey == "" && (t.KeyClass != "" || t.ConcurrencyLimit != 0 || t.OnConflict != ""):
		return errors.New("key class, concurrency limit and on conflict need a concurrency key")
	case t.ConcurrencyKey == "":
		return nil
	case t.KeyClass == "" || len([]rune(t.KeyClass)) > maxKeyClass || strings.Contains(t.KeyClass, ":") || !printable(t.KeyClass):
		return fmt.Errorf("key class %q is empty, longer than %d characters, or has a colon or a character that cannot be printed", t.KeyClass, maxKeyClass)
	case t.ConcurrencyLimit < 0 || t.ConcurrencyLimit > maxConcurrencyLimit:
		return fmt.Errorf("concurrency limit %d is not between 1 and %d", t.ConcurrencyLimit, maxConcurrencyLimit)
	case !known:
		return fmt.Errorf("on conflict %q is not one of queue, cancel_newcomer, cancel_oldest", t.OnConflict)
	}
	return nil
}

// isPlace reports whether the text is empty or a JSON Pointer.
func isPlace(text string) bool {
	if text == "" {
		return true
	}
	escapes := strings.NewReplacer("~0", "", "~1", "")
	return text[0] == '/' && len(text) <= maxPlace && printable(text) && !strings.Contains(escapes.Replace(text), "~")
}

func (t Terms) wire() *handlerv1.Terms {
	return &handlerv1.Terms{
		ConcurrencyKey: t.ConcurrencyKey, KeyClass: t.KeyClass, ConcurrencyLimit: uint32(t.ConcurrencyLimit),
		OnConflict: conflicts[t.OnConflict], FairnessKey: t.FairnessKey,
	}
}
