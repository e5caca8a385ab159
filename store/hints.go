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
	_, err := s.db.Worker.Exec(ctx, sql.Text("send_hint"), string(n.Hint), payloadOf(n))
	return postgres.Translate("send hint", err)
}

// origin is the payload of a hint from a process. Earlier versions take it for one about any job type.
type origin struct {
	From string `json:"from"`
}

// payloadOf is a JSON array of job types, or who sends a hint about any; empty if that does not
// matter, as earlier versions send it.
func payloadOf(n job.Notice) string {
	var payload []byte
	switch {
	case n.Types != nil:
		payload, _ = json.Marshal(n.Types) // strings can always be written
	case n.From != "":
		payload, _ = json.Marshal(origin{n.From})
	}
	if len(payload) > maxNotice {
		return ""
	}
	return string(payload)
}

// noticeOf reads a notification. It is about any job type if its payload cannot be read: a later
// version may say more.
func noticeOf(channel, payload string) job.Notice {
	n := job.Notice{Hint: job.Hint(channel)}
	if json.Unmarshal([]byte(payload), &n.Types) == nil {
		return n
	}
	n.Types = nil
	var by origin
	if json.Unmarshal([]byte(payload), &by) == nil {
		n.From = by.From
	}
	return n
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
		heard(noticeOf(notice.Channel, notice.Payload))
	}
}
