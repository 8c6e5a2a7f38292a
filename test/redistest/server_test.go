package redistest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/test/redistest"
)

func TestServer(t *testing.T) {
	s := redistest.Run(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redistest.Client(t, s.Addr())
	if err := client.Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if got, err := client.Get(t.Context(), "kept").Result(); got != "yes" || err != nil {
		t.Errorf("after a restart kept = %q, %v; want yes, nil", got, err)
	}
}

func TestCluster(t *testing.T) {
	addrs := redistest.Cluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		if err := client.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Fatalf("set %s: %v", key, err)
		}
	}
}

func TestTLS(t *testing.T) {
	s, files := redistest.RunTLS(t)
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(files.ClientCert, files.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		config *tls.Config
		fails  bool
	}{
		{"trusted both ways", &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, false},
		{"by name", &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: redistest.ServerName}, false},
		{"no certificate of the client", &tls.Config{RootCAs: pool}, true},
		{"an authority nobody knows", &tls.Config{Certificates: []tls.Certificate{pair}}, true},
		{"no TLS", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.config != nil {
				tt.config.MinVersion = tls.VersionTLS12
			}
			client := redistest.Dial(t, redis.Options{Addr: s.Addr(), TLSConfig: tt.config, MaxRetries: -1, DialerRetries: 1})
			if err := client.Ping(t.Context()).Err(); (err != nil) != tt.fails {
				t.Errorf("ping: %v, want an error: %v", err, tt.fails)
			}
		})
	}
}

func TestSentinel(t *testing.T) {
	g := redistest.Sentinel(t, 1)
	if got, want := g.Addr(), g.Master.Addr(); got != want {
		t.Errorf("master at %s, want %s", got, want)
	}
	g.Failover()
	if got, want := g.Addr(), g.Replicas[0].Addr(); got != want {
		t.Errorf("after a failover the master is at %s, want %s", got, want)
	}
}
