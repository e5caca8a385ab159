package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	defaultImage = "postgres:17-alpine"
	// containerPatience bounds a container's start, after its image is there. A slow disk takes more than a
	// minute to initialize the data.
	containerPatience = 5 * time.Minute
)

// startContainer runs PostgreSQL through Testcontainers.
func startContainer(ctx context.Context) (address string, end func(context.Context) error, err error) {
	image := defaultImage
	if wanted := os.Getenv("HOLDFAST_TEST_POSTGRES_IMAGE"); wanted != "" {
		image = wanted
	}
	container, err := postgres.Run(ctx, image,
		postgres.WithDatabase("holdfast"), postgres.WithUsername("holdfast"), postgres.WithPassword("holdfast"),
		// The first server only initializes the data. Looking for the port from inside would
		// need tools that an image may lack.
		testcontainers.WithAdditionalWaitStrategyAndDeadline(containerPatience,
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2).WithStartupTimeout(containerPatience),
			wait.ForListeningPort("5432/tcp").SkipInternalCheck().WithStartupTimeout(containerPatience)),
		testcontainers.WithCmdArgs("-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections="+connections))
	end = func(ctx context.Context) error {
		if container == nil {
			return nil
		}
		if err := testcontainers.TerminateContainer(container, testcontainers.StopContext(ctx)); err != nil {
			return fmt.Errorf("stop the container: %w", err)
		}
		return nil
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start a container: %w", err), end(ctx))
	}
	address, err = container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start a container: %w", err), end(ctx))
	}
	return address, end, nil
}
