package storetest_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Test(t, func(*testing.T) storetest.Fixture {
		var now time.Time
		return storetest.Fixture{
			Store:   storetest.NewMemory(func() time.Time { return now }),
			SetTime: func(to time.Time) { now = to },
		}
	})
}
