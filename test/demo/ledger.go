package main

import (
	"context"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/embedded"
)

// ledger opens the orchestrator's database: the API does not show attempts to clients.
func (s *stage) ledger(ctx context.Context, look func(*store.Store) error) error {
	server, err := embedded.Start(ctx, embedded.Config{DataDir: s.dataDir})
	if err != nil {
		return err
	}
	ledger, err := store.Open(ctx, store.Config{URL: server.URL(), MaxConnections: 2})
	if err != nil {
		return err
	}
	defer ledger.Close()
	return look(ledger)
}

func (s *stage) attempts(ctx context.Context, id string) (attempts []job.Attempt, err error) {
	parsed, err := job.ParseID(id)
	if err != nil {
		return nil, err
	}
	err = s.ledger(ctx, func(ledger *store.Store) error {
		detail, err := ledger.Detail(ctx, parsed)
		attempts = detail.Attempts
		return err
	})
	return attempts, err
}
