package client

import (
	"testing"

	"github.com/holdfast-jobs/holdfast/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
