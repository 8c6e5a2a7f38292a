package storetest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Test(t, func(_ *testing.T, zones ledger.Zones) storetest.Fixture {
		var now atomic.Int64
		return storetest.Fixture{
			Store:   storetest.NewMemory(func() time.Time { return time.UnixMilli(now.Load()) }, zones),
			SetTime: func(at time.Time) { now.Store(at.UnixMilli()) },
		}
	})
}
