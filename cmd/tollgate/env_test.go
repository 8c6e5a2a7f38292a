package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// storeLogin stores a login for the commands of a test.
func storeLogin(t *testing.T, text string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("TOLLGATE_KEY", "")
	if err := os.Mkdir(filepath.Join(home, "tollgate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "tollgate", "login.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The variables for tollgate are those that its commands read. The token of a login is not among them.
func TestEnvOfTollgate(t *testing.T) {
	storeLogin(t, `{"token":{"access_token":"stored"}}`)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"org":"` + r.Header.Get("Authorization") + `"}`))
	}))
	t.Cleanup(gateway.Close)
	t.Setenv(gatewayEnv, gateway.URL)
	if code, out, stderr := tell(t, "env", "tollgate"); code != 0 || out != "export TOLLGATE_GATEWAY='"+gateway.URL+"'\n" {
		t.Errorf("with a login: exit %d, %s%s", code, out, stderr)
	}
	if code, out, stderr := tell(t, "whoami", "-o", "json"); code != 0 || out != "{\n  \"org\": \"Bearer stored\"\n}\n" {
		t.Errorf("whoami: exit %d, %s%s", code, out, stderr)
	}
	t.Setenv("TOLLGATE_KEY", "k1")
	if code, out, stderr := tell(t, "env", "tollgate"); code != 0 || out != "export TOLLGATE_GATEWAY='"+gateway.URL+"'\nexport TOLLGATE_KEY='k1'\n" {
		t.Errorf("with a key: exit %d, %s%s", code, out, stderr)
	}
}

// The token of a login is not sent in clear. A gateway may be named without a scheme.
func TestTokenOfLoginIsConfidential(t *testing.T) {
	storeLogin(t, `{"token":{"access_token":"stored"}}`)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(gateway.Close)
	if code, _, stderr := tell(t, "whoami", "--gateway", gateway.Listener.Addr().String()); code != 0 {
		t.Errorf("an address without a scheme: exit %d, %s", code, stderr)
	}
	want := "tollgate: --gateway gateway.example:8080: tokens of a login are only sent over https\n"
	for _, line := range []string{"whoami", "my spend", "billing pods", "env cli --brand acme"} {
		code, _, stderr := tell(t, append(strings.Fields(line), "--gateway", "gateway.example:8080")...)
		if code != 2 || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
	}
}
