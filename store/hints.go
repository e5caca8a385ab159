package store

import (
	"context"
	"fmt"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Send sends a hint to every listener. It runs as a statement of its own, never as
// part of a transition: a commit that notifies takes a lock that all notifying commits
// of the server share.
func (s *Store) Send(ctx context.Context, hint job.Hint) error {
	_, err := s.db.Worker.Exec(ctx, sql.Text("send_hint"), string(hint))
	return postgres.Translate("send hint", err)
}

// Listen opens a connection of its own, calls ready once it listens, and then
// heard for every hint, until the context ends or the connection fails. It always
// returns an error.
func (s *Store) Listen(ctx context.Context, ready func(), heard func(job.Hint)) error {
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
		heard(job.Hint(notice.Channel))
	}
}
