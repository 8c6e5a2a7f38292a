package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/config"
)

func TestAdminURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, file, want string }{
		{"the default", "listen: 127.0.0.1:1\n", "http://127.0.0.1:8081"},
		{"all addresses", "admin: {listen: ':9000'}\n", "http://127.0.0.1:9000"},
		{"all IPv4 addresses", "admin: {listen: '0.0.0.0:9000'}\n", "http://127.0.0.1:9000"},
		{"all IPv6 addresses", "admin: {listen: '[::]:9000'}\n", "http://[::1]:9000"},
		{"one address", "admin: {listen: '10.0.0.7:9000'}\n", "http://10.0.0.7:9000"},
		{"a name", "admin: {listen: 'localhost:9000'}\n", "http://localhost:9000"},
		{"TLS", "admin: {listen: '0.0.0.0:9000', tls: {certificate: {file: a.crt}, key: {file: a.key}}}\n", "https://127.0.0.1:9000"},
		{"a fault elsewhere", "orgz: []\nadmin: {listen: ':9000', tokn: 1}\nredis: 7\n", "http://127.0.0.1:9000"},
		{"no port", "admin: {listen: localhost}\n", ""},
		{"no YAML", "admin: {", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tollgate.yaml")
			if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := config.AdminURL(path)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
