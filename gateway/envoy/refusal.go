package envoy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Refusal is a configuration that an Envoy did not take. It lasts until all connected
// Envoys of its group have taken the configuration in force.
type Refusal struct {
	// Since is when the first was refused of those that none has been taken after.
	Since time.Time `json:"since"`
	Node  string    `json:"node"`
	// Type, Version and Reason are those of the last one, Reason in Envoy's words.
	Type    string `json:"type"`
	Version string `json:"version"`
	Reason  string `json:"reason"`
	// Withdrawn says that the group keeps its configuration from before. Otherwise there was
	// none, or the refused one is being tried.
	Withdrawn bool `json:"withdrawn"`

	typeURL string
}

// maxSaid bounds the kept words of an Envoy, in bytes: they go to the log, to Redis and to
// other gateways.
const maxSaid = 1000

// clipReason is the kept part of an Envoy's words.
func clipReason(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxSaid)], "")
}

// refuse notes that a node has refused a version, with mu held.
func (s *Server) refuse(n *node, typeURL, version, reason string) {
	t := n.of(typeURL)
	t.refused, t.reason = version, cmp.Or(clipReason(reason), "no reason given")
	s.refused.Add(context.Background(), 1, //nolint:forbidigo // no request is at hand
		metric.WithAttributes(attribute.String("group", n.group), attribute.String("type", short(typeURL))))
	s.deps.Logger.Error("Envoy refused its configuration", "node", n.id, "group", n.group, "type", short(typeURL), "version", version, "reason", t.reason)
	if p := s.groups[n.group]; p != nil {
		r := &Refusal{Since: s.deps.Now(), Node: n.id, Type: short(typeURL), Version: version, Reason: t.reason, typeURL: typeURL}
		if p.refused != nil {
			r.Since, r.Withdrawn = p.refused.Since, p.refused.Withdrawn
		}
		p.refused = r
	}
	select {
	case s.withdrawn <- struct{}{}:
	default: // it is known already
	}
}

// review ends the refusals of groups whose Envoys have all taken the configuration, with
// mu held.
func (s *Server) review() {
	for id, p := range s.groups {
		if p.refused != nil && !p.refused.Withdrawn && s.taken(id, p.refused.typeURL) {
			s.deps.Logger.Info("Envoys have taken their configuration", "group", id, "type", p.refused.Type)
			p.refused = nil
		}
	}
}

// taken reports whether all Envoys of a group, and at least one, have the version of a type
// that the group is served, with mu held.
func (s *Server) taken(group, typeURL string) bool {
	served, found := s.version(group, typeURL), false
	for _, n := range s.nodes {
		if n.group != group {
			continue
		}
		t := n.types[typeURL]
		if t == nil || t.reason != "" || s.accepted(n, t, typeURL) != served {
			return false
		}
		found = true
	}
	return found && served != ""
}

// accepted is the version of a type that a node has, with mu held: the last one that it
// took, or that of the resources which it brought along from another gateway.
func (s *Server) accepted(n *node, t *acceptance, typeURL string) string {
	if t.accepted != "" || len(t.brought) == 0 {
		return t.accepted
	}
	snapshot, err := s.cache.GetSnapshot(n.group)
	if err != nil || !maps.Equal(t.brought, snapshot.GetVersionMap(typeURL)) {
		return ""
	}
	return snapshot.GetVersion(typeURL)
}

// Report is the state of the Envoys that are connected to one gateway.
type Report struct {
	// Nodes counts them by group.
	Nodes map[string]int64 `json:"nodes"`
	// Refused holds the refusals in force, by group.
	Refused map[string]Refusal `json:"refused,omitempty"`
}

// Report returns this gateway's report.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Nodes: make(map[string]int64), Refused: make(map[string]Refusal)}
	for id, p := range s.groups {
		r.Nodes[id] = 0
		if p.refused != nil {
			r.Refused[id] = *p.refused
		}
	}
	for _, n := range s.nodes {
		if n.group != "" {
			r.Nodes[n.group]++
		}
	}
	return r
}

// SetReports sets the reports of other gateways.
func (s *Server) SetReports(others []Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = others
}

// GroupStatus is how a group of Envoys is doing.
type GroupStatus struct {
	Group string `json:"group"`
	// Nodes counts its Envoys at all gateways that share a Redis, Here those connected to
	// this one.
	Nodes int64 `json:"nodes"`
	Here  int64 `json:"here"`
	// Refused is the refusal in force at any gateway; the oldest, if there are several.
	Refused *Refusal `json:"refused,omitempty"`
}

// Groups lists the groups that are configured, sorted.
func (s *Server) Groups() []GroupStatus {
	own := s.Report()
	s.mu.Lock()
	others := s.others
	s.mu.Unlock()
	groups := []GroupStatus{}
	for _, id := range slices.Sorted(maps.Keys(own.Nodes)) {
		g := GroupStatus{Group: id, Here: own.Nodes[id]}
		for _, r := range append([]Report{own}, others...) {
			g.Nodes += r.Nodes[id]
			if refused, ok := r.Refused[id]; ok && (g.Refused == nil || refused.Since.Before(g.Refused.Since)) {
				g.Refused = &refused
			}
		}
		groups = append(groups, g)
	}
	return groups
}
