package settings_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

func TestConnectionsFaults(t *testing.T) {
	err := (&settings.Connections{Total: -1, PerAddress: -2}).Validate()
	if err == nil || err.Error() != "total: must not be negative, got -1\nper_address: must not be negative, got -2" {
		t.Errorf("Validate = %v", err)
	}
}
