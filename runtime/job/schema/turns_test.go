package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Checks of any schema that take long hold all turns; of the same schema, too.
func TestAQuickCheckDoesNotWaitForThoseThatTakeLong(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"items":{"type":"integer"}}`))
	require.NoError(t, err)
	for range cap(slowTurns) {
		slowTurns <- struct{}{}
	}
	require.Empty(t, s.Check(json.RawMessage(`[1,2,3]`)))

	large := json.RawMessage("[" + strings.Repeat("1,", quickSteps) + "1]")
	many, err := Compile(json.RawMessage(fmt.Sprintf(`{"items":{"anyOf":[%s{}]}}`, strings.Repeat(`{"type":"null"},`, 50))))
	require.NoError(t, err)
	slow := json.RawMessage("[" + strings.Repeat("1,", 200) + "1]")
	for name, check := range map[string]func(context.Context) ([]Violation, error){
		"a large payload": func(ctx context.Context) ([]Violation, error) { return s.CheckWithin(ctx, large) },
		"many steps":      func(ctx context.Context) ([]Violation, error) { return many.CheckWithin(ctx, slow) },
	} {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := check(over)
		require.ErrorIs(t, err, context.Canceled, name)
	}
	late, cancel := context.WithCancelCause(t.Context())
	cancel(ErrBusy)
	_, err = s.CheckWithin(late, large)
	require.ErrorIs(t, err, ErrBusy)

	waits := make(chan []Violation, 1)
	go func() { waits <- many.Check(slow) }()
	for range cap(slowTurns) {
		<-slowTurns
	}
	require.Empty(t, <-waits)
	require.Empty(t, slowTurns)
}
