package dev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config"
)

// Options are the options of [Session.Run].
type Options struct {
	// Host is the host name or address given by the user, and Listener a listener on Host.
	Host     string
	Listener net.Listener
	// Reload makes the server reload the project when files change.
	Reload bool
	// Provision makes the server create all endpoints when it starts.
	Provision bool
	// Remove makes the server delete the endpoints of the session when it ends.
	Remove bool
	// Ask is the source of the answer when Run asks whether to create many endpoints. If Ask is nil, Agreed is the answer.
	Ask    *bufio.Reader
	Agreed bool
	Logger *slog.Logger
}

// Run serves a project until ctx ends. It then deletes the session's endpoints if o.Remove is set, and lists the endpoints that remain.
func (s *Session) Run(ctx context.Context, p *Project, o Options) error {
	s.unserved(p)
	if len(p.Endpoints) == 0 {
		return fmt.Errorf("%s: no endpoints found, neither in Python files nor in %s", p.Dir, manifestName)
	}
	hosts, err := Hosts(o.Host, o.Listener.Addr())
	if err != nil {
		return err
	}
	server, err := NewServer(s, p, hosts)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(o.Host); o.Host != "localhost" && (err != nil || !ip.IsLoopback()) {
		s.say("Warning: %s is not loopback. The server requires no key: anyone who can reach it can rent resources with your key.", o.Host)
	}
	s.greet(p, hosts[0])
	if o.Provision {
		if err := s.all(ctx, p, o); err != nil {
			return err
		}
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Guard(running) })
	if o.Reload {
		group.Go(func() error { s.follow(running, server, p, o.Logger); return nil })
	}
	web := &http.Server{Handler: server, ReadHeaderTimeout: 5 * time.Second}
	group.Go(func() error {
		<-running.Done()
		return web.Close()
	})
	group.Go(func() error {
		if err := web.Serve(o.Listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	err = group.Wait()
	if o.Remove {
		s.RemoveAll(context.WithoutCancel(ctx))
	}
	s.ListRemaining()
	return err
}

// unserved prints the faults and notices of a project.
func (s *Session) unserved(p *Project) {
	for _, f := range p.Faults {
		s.say("Fault: %s", f.Error())
	}
	for _, f := range p.Notices {
		s.say("Notice: %s", f.Error())
	}
}

// greet prints the routes.
func (s *Session) greet(p *Project, host string) {
	t := tabwriter.NewWriter(s.set.Out, 0, 0, 2, ' ', 0)
	for _, r := range p.Routes {
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", r.Method, r.Path, r.Endpoint.name(), printable(r.summary())) // Flush returns the error
	}
	_ = t.Flush() // ignored as in say
	s.say("\n  docs  http://%s/docs\n  stop  Ctrl-C\n", host)
}

// Run asks for confirmation before it creates more than many endpoints. It creates at most atOnce endpoints at the same time.
const (
	many   = 5
	atOnce = 3
)

// all creates all endpoints. If an endpoint cannot be created, its first call retries.
func (s *Session) all(ctx context.Context, p *Project, o Options) error {
	if n := len(p.Endpoints); n > many && !o.Agreed {
		line, err := "", io.EOF
		if o.Ask != nil {
			s.say("Create %d endpoints? [y/N]", n)
			line, err = o.Ask.ReadString('\n')
		}
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case err != nil:
			return fmt.Errorf("--auto-provision would create %d endpoints: confirm with --yes, or run the command in a terminal", n)
		case answer != "y" && answer != "yes":
			return errors.New("no endpoints were created")
		}
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, e := range p.Endpoints {
		group.Go(func() error {
			_, _ = s.Endpoint(ctx, e, p.Python) // the session prints the error
			return nil
		})
	}
	return group.Wait()
}

// follow updates the server when the project changes.
func (s *Session) follow(ctx context.Context, server *Server, p *Project, logger *slog.Logger) {
	config.Watch(ctx, p.inputs, config.ReloadRequests{}, logger, func(bool) config.Inputs {
		now := inputsOf(p.Dir)
		next, err := s.python.Read(ctx, p.Dir)
		if err != nil {
			s.say("Cannot read the project, keeping the previous version: %v", err)
			return now
		}
		server.Serve(next)
		s.say("Reloaded: %d routes.", len(next.Routes))
		s.unserved(next)
		return next.inputs
	})
}

// Standing describes an endpoint that was created for the project, and whether the endpoint still exists.
type Standing struct {
	Name   string    `json:"name"`
	ID     string    `json:"id"`
	Status string    `json:"status"` // Active (exists), Inactive (deleted) or Unknown
	Hourly float64   `json:"usd_per_hour"`
	Made   time.Time `json:"made"`
	// Gateway is the URL of the gateway that created the endpoint. Elsewhere is true if the session uses another gateway.
	Gateway   string `json:"gateway"`
	Elsewhere bool   `json:"-"`
}

// List returns all endpoints that were created for the project. It requests their status from the session's gateway.
func (s *Session) List(ctx context.Context) ([]Standing, error) {
	all, err := s.state.Read()
	list := []Standing{}
	for gateway, names := range sorted(all) {
		for name, e := range sorted(names) {
			if e.Key == "" {
				continue
			}
			found := Standing{
				Name: livePrefix + name, ID: e.ID, Status: "Unknown", Hourly: e.Hourly, Made: e.Made, Gateway: gateway,
				Elsewhere: gateway != s.gateway.URL,
			}
			if !found.Elsewhere && e.ID != "" {
				switch there, err := s.gateway.there(ctx, name, e.ID); {
				case err == nil && there:
					found.Status = "Active"
				case err == nil:
					found.Status = "Inactive"
				}
			}
			list = append(list, found)
		}
	}
	return list, err
}
