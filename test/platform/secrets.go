package platform

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"
)

const (
	// reservedPrefix is the platform's own name, with which no secret's name begins, in any
	// letter case.
	reservedPrefix = "runpod"
	// secretMark separates the platform's name from the secret's in a placeholder.
	secretMark = "_SECRET_"

	maxDescription = 65_535 // bytes
)

// secret is a value that environments refer to by name. No answer contains the value.
type secret struct {
	ID, Name, Value string
	Description     string // empty is null
	CreatedAt       time.Time
	RotatedAt       time.Time // when Value was set
}

func (x *exchange) showSecret(s *secret) object {
	return object{
		"id", s.ID, "name", s.Name, "description", optional(s.Description), "createdAt", s.CreatedAt, "valueLastUpdatedAt", s.RotatedAt,
	}
}

func secrets() resource[secret] {
	return resource[secret]{
		one: "Secret", many: "Secrets", path: "/v2/account/secrets", member: "secrets", noun: "secret",
		query:  []string{"name"},
		filter: secretFilter,
		table:  func(a *account) *table[secret] { return &a.secrets },
		show:   (*exchange).showSecret,
		id:     func(s *secret) *string { return &s.ID },
		create: writes((*exchange).makeSecretLocked),
		update: writes((*exchange).changeSecretLocked),
		remove: func(x *exchange, s *secret) error {
			x.acct.secrets.remove(s.ID)
			return nil
		},
	}
}

// secretFilter selects one name, ignoring letter case.
func secretFilter(_ *exchange, p *params) (shown func(*secret) bool, scope string) {
	name, given := p.q.Get("name"), p.has("name")
	return func(s *secret) bool { return !given || strings.EqualFold(s.Name, name) }, ""
}

// secretRequest is the body of a create.
type secretRequest struct {
	Name        string `body:"name" need:"yes" min:"1" max:"191" form:"secret name"`
	Value       string `body:"value" need:"yes" min:"1"`
	Description string `body:"description" form:"secret description"`
}

// secretChange is the body of a change.
type secretChange struct {
	Value       *string `body:"value" min:"1"`
	Description *string `body:"description" form:"secret description"`
}

func (*secretChange) check(f fields) { f.atLeastOne() }

func checkSecretName(s string) string {
	if !secretName.MatchString(s) {
		return "must match " + secretName.String()
	}
	return ""
}

func checkDescription(s string) string {
	if len(s) > maxDescription {
		return fmt.Sprintf("must be %d bytes or shorter", maxDescription)
	}
	return ""
}

// secretName is the form of a name.
var secretName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.\-/]*$`)

func (x *exchange) makeSecretLocked(s *secret, want *secretRequest) (func(), error) {
	if strings.HasPrefix(strings.ToLower(want.Name), reservedPrefix) {
		return nil, badRequest("the name of a secret must not start with '" + want.Name[:len(reservedPrefix)] + "'")
	}
	if x.acct.secretLocked(want.Name) != nil {
		return nil, conflict("a secret with this name exists")
	}
	*s = secret{Name: want.Name, Value: want.Value, Description: want.Description, CreatedAt: x.now, RotatedAt: x.now}
	return nil, nil
}

// changeSecretLocked sets the value, then the description. It is not atomic: FaultHalf
// fails it after the value has been set.
func (x *exchange) changeSecretLocked(s *secret, want *secretChange) (func(), error) {
	if want.Value != nil {
		s.Value, s.RotatedAt = *want.Value, x.now
		x.acct.secrets.touch(s.ID)
	}
	if want.Description != nil && x.half != 0 {
		return nil, refuse(x.half, "the description could not be set")
	}
	set(&s.Description, want.Description)
	return nil, nil
}

// secretLocked finds a secret by its name, ignoring letter case; nil if there is none.
func (a *account) secretLocked(name string) *secret {
	for _, s := range a.secrets.order {
		if strings.EqualFold(s.Name, name) {
			return s
		}
	}
	return nil
}

// bootedLocked returns the environment that a container gets if it boots now: in env,
// each placeholder is replaced by the value of its secret.
func (a *account) bootedLocked(env map[string]string) map[string]string {
	out := make(map[string]string, len(env))
	for name, value := range env {
		out[name] = a.resolvedLocked(value)
	}
	return out
}

// resolvedLocked replaces each {{ <PLATFORM>_SECRET_<name> }} in text by the value of the
// secret, and by nothing if there is no such secret.
func (a *account) resolvedLocked(text string) string {
	var b strings.Builder
	for {
		before, rest, opened := strings.Cut(text, "{{")
		inner, after, closed := strings.Cut(rest, "}}")
		b.WriteString(before)
		if !opened {
			return b.String()
		}
		_, name, named := strings.Cut(strings.TrimSpace(inner), secretMark)
		if !closed || !named {
			b.WriteString("{{")
			text = rest
			continue
		}
		if s := a.secretLocked(name); s != nil {
			b.WriteString(s.Value)
		}
		text = after
	}
}

// Environment returns the environment that the container of a pod, a worker or a sandbox
// has had since it last booted, with the values of secrets in it.
func (s *Server) Environment(id string) (map[string]string, error) {
	s.mu.Lock()
	defer s.release()
	now := s.clock.Now()
	for _, a := range s.accounts {
		s.advanceLocked(a, now)
		if p := a.pods.get(id); p != nil {
			return maps.Clone(p.Booted), nil
		}
		if b := a.sandboxes.get(id); b != nil {
			return maps.Clone(b.Booted), nil
		}
		for _, e := range a.endpoints.order {
			if w := e.worker(id); w != nil {
				return maps.Clone(w.Env), nil
			}
		}
	}
	return nil, fmt.Errorf("no pod, worker or sandbox is called %q", id)
}
