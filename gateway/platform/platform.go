package platform

import (
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// New returns the client of the platform.
func New(c *settings.Config) (*upstream.Client, error) {
	return upstream.New(upstreamOf(c), credentialsOf(c))
}

// upstreamOf is where the platform is, for its client.
func upstreamOf(c *settings.Config) upstream.Config {
	return upstream.Config{BaseURL: c.Platform.BaseURL, Timeout: c.Timeouts.Response, ConnectTimeout: c.Timeouts.Connect, MaxIdle: 256, Connections: c.Platform.Connections, Proxy: c.Platform.Proxy.Reveal()}
}

// runsOf is where the run interface is, for its client.
func runsOf(c *settings.Config) upstream.Config {
	u := upstreamOf(c)
	u.BaseURL, u.Timeout, u.MaxIdle = c.Platform.RunURL, c.Timeouts.Run, 512
	return u
}

// balancedOf is where load-balanced endpoints are, for their client.
func balancedOf(c *settings.Config) upstream.Config {
	r := runsOf(c)
	r.BaseURL = strings.Replace(c.Platform.BalancedURL, "{id}", "id", 1)
	r.Duplex = true // a worker may answer what it has not read to its end
	return r
}

// credentialsOf lists the platform keys by organisation.
func credentialsOf(c *settings.Config) map[string]upstream.Credential {
	m := make(map[string]upstream.Credential, len(c.Orgs))
	for _, o := range c.Orgs {
		if o.Credential.Resolved() {
			m[o.ID] = upstream.NewCredential(o.Credential.Reveal())
		}
	}
	return m
}

// runCredentials lists those for the run interface and for load-balanced endpoints.
func runCredentials(c *settings.Config) map[string]upstream.Credential {
	m := credentialsOf(c)
	for _, o := range c.Orgs {
		if o.RunCredential.IsZero() {
			continue
		}
		delete(m, o.ID) // which is not sent there, whatever becomes of the other
		if o.RunCredential.Resolved() {
			m[o.ID] = upstream.NewCredential(o.RunCredential.Reveal())
		}
	}
	return m
}
