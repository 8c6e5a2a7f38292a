package platform

import (
	"maps"
	"strconv"
	"strings"
)

// defaultDisk is the container disk in GB when a body says nothing of it.
const defaultDisk = 20

// container is the block that pods, templates, endpoints and cluster members
// have in common.
type container struct {
	Image    string
	Command  command
	Disk     int64 // GB
	Env      map[string]string
	Ports    []string
	Registry string // empty is none
}

// containerSettings is what a body says of the block.
type containerSettings struct {
	Image      *string           `body:"image"`
	Args       *string           `body:"args"`
	Cmd        *[]string         `body:"cmd"`
	Entrypoint *[]string         `body:"entrypoint"`
	Env        map[string]string `body:"env"`
	Ports      *[]string         `body:"ports"`
	Disk       *int64            `body:"disk" min:"1"`
}

// containerPatch is containerSettings with a registry; null is an empty one.
type containerPatch struct {
	containerSettings

	Registry *string `body:"registry" null:"yes"`
}

// envMode says what a body's env does to the earlier one.
type envMode int

const (
	replaceEnv envMode = iota
	mergeEnv           // key by key, the body's value wins
)

// over applies the patch to base.
func (p containerPatch) over(base container, mode envMode) (container, error) {
	c := base
	var err error
	if c.Command, err = p.command(base.Command); err != nil {
		return c, err
	}
	if set(&c.Image, p.Image); c.Image == "" {
		return c, badRequest("image must not be empty")
	}
	set(&c.Disk, p.Disk)
	set(&c.Ports, p.Ports)
	set(&c.Registry, p.Registry)
	c.Env = mergedEnv(base.Env, p.Env, mode)
	return c, c.check()
}

func mergedEnv(base, env map[string]string, mode envMode) map[string]string {
	switch {
	case env == nil:
		return maps.Clone(base)
	case mode == replaceEnv:
		return maps.Clone(env)
	}
	out := make(map[string]string, len(base)+len(env))
	maps.Copy(out, base)
	maps.Copy(out, env)
	return out
}

// check applies the rules the contract does not carry.
func (c container) check() error {
	for i, port := range c.Ports {
		if !validPort(port) {
			return badRequest("ports must read <port>/<protocol> with protocol http or tcp",
				"$.ports["+strconv.Itoa(i)+"]: got '"+port+"'")
		}
	}
	sent := c
	sent.Command = command{Args: c.Command.Args} // the words are the same command once more
	if len(sent.members().append(nil)) > maxBody+len("{}") {
		return tooLarge("the expanded request is larger than " + strconv.Itoa(maxBody) + " bytes")
	}
	return nil
}

// validPort takes 1 to 65535, and for tcp the numbers above 70000 that ask for
// the same port inside and outside.
func validPort(s string) bool {
	number, protocol, ok := strings.Cut(s, "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || !digits(number) {
		return false
	}
	switch protocol {
	case "http":
		return n >= 1 && n <= 65535
	case "tcp":
		return n >= 1 && n <= 65535 || n > 70000 && n < 100000
	default:
		return false
	}
}

// members are the block's members of a record.
func (c container) members() object {
	return object{
		"image", c.Image, "args", c.Command.Args, "cmd", c.Command.Cmd, "entrypoint", c.Command.Entrypoint, "disk", c.Disk, "env", c.Env,
		"ports", c.Ports, "registry", optional(c.Registry),
	}
}
