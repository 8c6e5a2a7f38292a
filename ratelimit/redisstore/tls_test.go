package redisstore_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// secureURL is the URL of a server with TLS for a user, with parameters in pairs.
func secureURL(user, addr string, parameters ...string) string {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	return "rediss://" + user + addr + "/0?" + query.Encode()
}

// TestTLS runs everything over TLS, with certificates of both sides, as a user
// with no more rights than the documentation asks for.
func TestTLS(t *testing.T) {
	server, files := redistest.RunTLS(t)
	client := []string{"tls_ca", files.CA, "tls_cert", files.ClientCert, "tls_key", files.ClientKey}
	// In TLS 1.3 a client may write before it is told that its certificate is missed,
	// and then the connection may just break.
	old, oldFiles := redistest.RunTLS(t, "--tls-protocols", "TLSv1.2")
	admin := open(t, secureURL("", server.Addr(), client...))
	grant(t, admin, "limiter", "secret")
	for _, tt := range []struct {
		name, url string
		// fails is a part of the error; empty if all works.
		fails string
	}{
		{"as documented", secureURL("limiter:secret@", server.Addr(), client...), ""},
		{"by name", secureURL("limiter:secret@", server.Addr(), append(client, "tls_server_name", redistest.ServerName)...), ""},
		{"another name", secureURL("limiter:secret@", server.Addr(), append(client, "tls_server_name", "elsewhere.test")...), "elsewhere.test"},
		{"an authority nobody knows", secureURL("limiter:secret@", server.Addr(), client[2:]...), "unknown authority"},
		{"no certificate", secureURL("limiter:secret@", old.Addr(), "tls_ca", oldFiles.CA), "handshake failure"},
		{"wrong password", secureURL("limiter:guess@", server.Addr(), client...), "WRONGPASS"},
		{"no TLS", "redis://limiter:secret@" + server.Addr(), "EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, open(t, tt.url))
			if tt.fails == "" {
				useAll(t, s)
				return
			}
			_, err := s.Apply(t.Context(), one(5))
			if err == nil || !strings.Contains(err.Error(), tt.fails) && tt.fails != "EOF" {
				t.Errorf("error = %v, want one with %q", err, tt.fails)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// TestTLSCounts shows that others see counts made over TLS.
func TestTLSCounts(t *testing.T) {
	server, files := redistest.RunTLS(t)
	u := secureURL("", server.Addr(), "tls_ca", files.CA, "tls_cert", files.ClientCert, "tls_key", files.ClientKey)
	var ops []ratelimit.Op
	for range 3 {
		ops = one(10)
		if _, err := newStore(t, open(t, u)).Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	if got := ops[0].After[0].Count[2]; got != 3 {
		t.Errorf("the third store counts %d, want 3", got)
	}
}

// TestRenewedTLSFiles shows that a client connects with the current files, and with the last valid ones while the files are replaced.
func TestRenewedTLSFiles(t *testing.T) {
	server, files := redistest.RunTLS(t)
	_, others := redistest.RunTLS(t)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	replace := func(to, from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(ca, others.CA)
	replace(cert, others.ClientCert)
	replace(key, others.ClientKey)
	s := newStore(t, open(t, secureURL("", server.Addr(), "tls_ca", ca, "tls_cert", cert, "tls_key", key)))
	if _, err := s.Apply(t.Context(), one(5)); err == nil {
		t.Fatal("the files of another server are accepted")
	}
	replace(ca, files.CA)
	replace(cert, files.ClientCert)
	replace(key, files.ClientKey)
	if _, err := s.Apply(t.Context(), one(5)); err != nil {
		t.Errorf("with the renewed files: %v", err)
	}
	replace(key, others.ClientKey)
	admin := open(t, secureURL("", server.Addr(), "tls_ca", files.CA, "tls_cert", files.ClientCert, "tls_key", files.ClientKey))
	if err := admin.ClientKillByFilter(t.Context(), "TYPE", "normal").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Apply(t.Context(), one(5))
	for tries := 0; err != nil && tries < 10; tries++ { // the pool may have connections that the server has closed
		_, err = s.Apply(t.Context(), one(5))
	}
	if err != nil {
		t.Errorf("while the files are replaced: %v", err)
	}
}

func TestTLSFiles(t *testing.T) {
	_, files := redistest.RunTLS(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, scheme string
		parameters   []string
		want         string
	}{
		{"no TLS", "redis", []string{"tls_ca", files.CA}, "tls_ca requires TLS"},
		{"half a pair", "rediss", []string{"tls_cert", files.ClientCert}, "tls_cert and tls_key must be set together"},
		{"no file", "rediss", []string{"tls_ca", empty + ".gone"}, "tls_ca: open"},
		{"nothing in it", "rediss", []string{"tls_ca", empty}, "contains no certificate"},
		{"not a pair", "rediss", []string{"tls_cert", files.CA, "tls_key", files.ClientKey}, "tls_cert: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := secureURL("u:secret@", "h:1", tt.parameters...)
			_, err := redisstore.Options(tt.scheme + strings.TrimPrefix(u, "rediss"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}
