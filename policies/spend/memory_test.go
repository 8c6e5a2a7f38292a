package spend_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/policies/spend/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Test(t, func(*testing.T) storetest.Fixture {
		var now atomic.Int64
		return storetest.Fixture{
			Store:   spend.NewMemory(func() time.Time { return time.UnixMilli(now.Load()) }),
			SetTime: func(at time.Time) { now.Store(at.UnixMilli()) },
		}
	})
}
