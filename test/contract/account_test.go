package contract

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func account(t *testing.T, c *client) {
	t.Helper()
	before := c.want(t, 200, "getSshKeys", "")
	set := []any{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 contract", "sk-ssh-ed25519@openssh.com AAAA"}
	body := `{"keys":["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 contract","sk-ssh-ed25519@openssh.com AAAA"]}`
	if diff := cmp.Diff(set, c.want(t, 200, "updateSshKeys", body).at("keys")); diff != "" {
		t.Errorf("the new set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(set, c.want(t, 200, "getSshKeys", "").at("keys")); diff != "" {
		t.Errorf("the set read back (-want +got):\n%s", diff)
	}
	for _, body := range []string{`{}`, `{"keys":["no key"]}`, `{"keys":["ssh-rsa AAAA\nssh-rsa BBBB"]}`} {
		c.want(t, 422, "updateSshKeys", body)
	}
	old, err := json.Marshal(map[string]any{"keys": before.at("keys")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.at("keys"), c.want(t, 200, "updateSshKeys", string(old)).at("keys")); diff != "" {
		t.Errorf("the old set put back (-want +got):\n%s", diff)
	}
}
