package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// maxNotice is how long the payload of a notification may be: PostgreSQL refuses 8,000 bytes.
const maxNotice = 7999

// Send sends a hint to every listener. It runs as a statement of its own, never as
// part of a transition: a commit that notifies takes a lock that all notifying commits
// of the server share. A hint about very many job types becomes one about any.
func (s *Store) Send(ctx context.Context, n job.Notice) error {
	_, err := s.db.Worker.Exec(ctx, sql.Text("send_hint"), string(n.Hint), payloadOf(n.Types))
	return postgres.Translate("send hint", err)
}

// payloadOf is a JSON array, or empty for any job type, as earlier versions send it.
func payloadOf(types []string) string {
	if types == nil {
		return ""
	}
	payload, _ := json.Marshal(types) // strings can always be written
	if len(payload) > maxNotice {
		return ""
	}
	return string(payload)
}

// typesIn is nil, any job type, for what it cannot read: a later version may say more.
func typesIn(payload string) []string {
	var types []string
	if json.Unmarshal([]byte(payload), &types) != nil {
		return nil
	}
	return types
}

// Listen opens a connection of its own, calls ready once it listens, and then
// heard for every hint, until the context ends or the connection fails. It always
// returns an error.
func (s *Store) Listen(ctx context.Context, ready func(), heard func(job.Notice)) error {
	config, err := s.db.Listener()
	if err != nil {
		return err
	}
	conn, err := postgres.Connect(ctx, config)
	if err != nil {
		return postgres.Translate("listen", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is lost with it
	for _, hint := range job.Hints() {
		if _, err := conn.Exec(ctx, "listen "+string(hint)); err != nil {
			return postgres.Translate("listen", err)
		}
	}
	ready()
	for {
		notice, err := conn.WaitForNotification(ctx)
		if err != nil {
			return postgres.Translate(fmt.Sprintf("wait for hint on %s", conn.Config().Host), err)
		}
		heard(job.Notice{Hint: job.Hint(notice.Channel), Types: typesIn(notice.Payload)})
	}
}
