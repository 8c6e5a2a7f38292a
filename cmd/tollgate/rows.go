package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// addRows adds the commands generated from routes of the operators' API, and their groups, to root.
func addRows(root *cobra.Command) {
	var all []*rowCommand
	for _, r := range gateway.AdminRows() {
		for _, c := range r.Commands {
			all = append(all, &rowCommand{row: &r, spec: c, name: nameOf(c.Use)})
			if c.Group != "" {
				root.AddCommand(group(firstWord(c.Use), c.Group, indent(c.Example)))
			}
		}
	}
	// A command is added before its subcommands, whose names are longer. Otherwise its name would be taken for an argument of the group.
	slices.SortStableFunc(all, func(a, b *rowCommand) int { return cmp.Compare(strings.Count(a.name, " "), strings.Count(b.name, " ")) })
	for _, c := range all {
		parent, name := root, c.spec.Use
		for {
			word, rest, more := strings.Cut(name, " ")
			below := childOf(parent, word)
			if !more || below == nil {
				break
			}
			parent, name = below, rest
		}
		parent.AddCommand(c.command(name))
		if c.spec.Heading != "" {
			childOf(root, firstWord(c.name)).GroupID = c.spec.Heading
		}
	}
}

func firstWord(text string) string { return strings.Fields(text)[0] }

func childOf(parent *cobra.Command, name string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// nameOf returns the name of a command from its usage line.
func nameOf(use string) string {
	words := strings.Fields(use)
	return strings.Join(words[:len(words)-len(argumentsOf(use))], " ")
}

// argumentsOf returns the arguments in the usage line of a command, which are its upper-case words.
func argumentsOf(use string) []string {
	return slices.DeleteFunc(strings.Fields(use), func(word string) bool { return word != strings.ToUpper(word) })
}

// rowCommand is a command generated from a route of the operators' API.
type rowCommand struct {
	row    *adminapi.Endpoint
	spec   adminapi.Command
	name   string
	client *adminClient
	out    *output
	watch  time.Duration
	stream bool // stream new entries
	given  url.Values
}

func (c *rowCommand) command(use string) *cobra.Command {
	arguments := argumentsOf(c.spec.Use)
	cmd := &cobra.Command{
		Use: use, Short: c.spec.Short, Long: c.spec.Long, Example: indent(c.spec.Example), Args: named(arguments),
		RunE: action(func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) }),
	}
	cmd.Short = cmp.Or(cmd.Short, c.row.Summary)
	if c.row.ContentType == "" {
		c.out = outputFlag(cmd)
	}
	if c.row.Method() == "GET" && c.row.ContentType == "" {
		cmd.Flags().DurationVar(&c.watch, "watch", 0, "repeat the command at this interval, such as 5s")
	}
	if c.name == followedCommand {
		cmd.Flags().BoolVar(&c.stream, "follow", false, "print new decisions until interrupted")
		cmd.MarkFlagsMutuallyExclusive("follow", "watch")
	}
	c.given = url.Values{}
	taken := c.positions(arguments)
	for _, p := range c.row.Parameters() {
		if _, fixed := c.spec.Fixed[p.Name]; !fixed && !slices.Contains(taken, p.Name) {
			c.flag(cmd, &p)
		}
	}
	c.client = newAdminClient(cmd)
	completeArguments(cmd, arguments)
	return cmd
}

// flag adds the flag of a parameter.
func (c *rowCommand) flag(cmd *cobra.Command, p *adminapi.Param) {
	p = new(*p)
	if d, ok := c.spec.Defaults[p.Name]; ok {
		p.Default = d
	}
	name := strings.ReplaceAll(p.Name, "_", "-")
	usage := p.Doc
	if p.OneOf != nil {
		usage += ": " + strings.Join(p.OneOf, ", ")
	}
	if p.Repeatable {
		usage += "; can be repeated"
	}
	f := cmd.Flags().VarPF(&paramFlag{p: p, to: c.given}, name, "", usage)
	if p.Type.Kind() == reflect.Bool {
		f.NoOptDefVal = "true"
	}
	if p.Required && p.Default == "" {
		must(cmd.MarkFlagRequired(name))
	}
	completeParam(cmd, name, p)
}

// paramFlag is a flag for a parameter of a route.
type paramFlag struct {
	p  *adminapi.Param
	to url.Values
}

// String implements pflag.Value. It returns the last value or the default.
func (f *paramFlag) String() string {
	if f.p == nil { // help compares with the zero value
		return ""
	}
	if given := f.to[f.p.Name]; len(given) > 0 {
		return given[len(given)-1]
	}
	return f.p.Default
}

// Set implements pflag.Value.
func (f *paramFlag) Set(text string) error {
	if err := f.p.Check(text); err != nil {
		return err
	}
	if f.p.Repeatable {
		f.to.Add(f.p.Name, text)
	} else {
		f.to.Set(f.p.Name, text)
	}
	return nil
}

// Type implements pflag.Value.
func (f *paramFlag) Type() string {
	switch f.p.Type {
	case reflect.TypeFor[adminapi.Duration]():
		return "duration"
	case reflect.TypeFor[adminapi.Timestamp](), reflect.TypeFor[adminapi.Since]():
		return "time"
	}
	return f.p.Type.Kind().String()
}

// positions returns the names of the parameters that are passed as arguments, in order.
func (c *rowCommand) positions(arguments []string) (names []string) {
	has := func(name string) bool {
		return slices.ContainsFunc(c.row.Parameters(), func(p adminapi.Param) bool { return p.Name == name })
	}
	for _, word := range arguments {
		for part := range strings.SplitSeq(strings.ToLower(word), "/") {
			if part == "key" && !has("key") {
				part = "id"
			}
			names = append(names, part)
		}
	}
	return names
}

// named returns a function that checks the number of arguments: all required arguments, followed by some of the optional ones. The error of
// the function names the first missing or superfluous argument.
func named(required []string, optional ...string) cobra.PositionalArgs {
	most := len(required) + len(optional)
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(required):
			return fmt.Errorf("%s is missing", required[len(args)])
		case len(args) > most:
			return fmt.Errorf("unexpected argument %q%s", args[most], flagFor(cmd, args[most]))
		}
		return nil
	}
}

// flagFor suggests the flag that the user may have meant by an unexpected argument. It returns "" if it has no suggestion.
func flagFor(cmd *cobra.Command, argument string) string {
	isFile := strings.HasSuffix(argument, ".yaml") || strings.HasSuffix(argument, ".yml")
	switch {
	case isFile && cmd.Flag("config") != nil:
		return ", did you mean -c " + argument + "?"
	case !isFile && cmd.Flag("org") != nil:
		return ", did you mean --org " + argument + "?"
	}
	return ""
}

// query returns the query parameters of the request.
func (c *rowCommand) query(args []string) (url.Values, error) {
	q := url.Values{}
	for _, more := range []map[string]string{c.spec.Defaults, c.spec.Fixed} {
		for name, value := range more {
			q.Set(name, value)
		}
	}
	maps.Copy(q, c.given)
	arguments := argumentsOf(c.spec.Use)
	names := c.positions(arguments)
	for i, word := range arguments {
		if !strings.Contains(word, "/") {
			q.Set(names[0], args[i])
			names = names[1:]
			continue
		}
		org, id, err := cutKey(args[i])
		if err != nil {
			return nil, err
		}
		q.Set(names[0], org)
		q.Set(names[1], id)
		names = names[2:]
	}
	return q, nil
}

func (c *rowCommand) run(cmd *cobra.Command, args []string) error {
	q, err := c.query(args)
	if err != nil {
		return err
	}
	if c.watch < 0 {
		return usagef("--watch must not be negative")
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	if c.stream {
		return c.follow(ctx, q, w, cmd.ErrOrStderr())
	}
	target := c.row.Path() + "?" + q.Encode()
	if c.row.ContentType != "" {
		return c.client.copy(ctx, target, w)
	}
	for {
		if err := c.show(ctx, target, asked{q, c.out}, w); err != nil || c.watch == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.watch):
			_, _ = fmt.Fprintln(w)
		}
	}
}

// show sends one request and writes the response.
func (c *rowCommand) show(ctx context.Context, target string, a asked, w io.Writer) error {
	text, err := c.client.read(ctx, c.row.Method(), target, nil)
	if err != nil {
		return err
	}
	if c.row.ResponseType() == nil {
		text = []byte("{}\n")
	}
	view, ok := views()[c.name]
	if !ok {
		view = plain(c.row.ResponseType())
	}
	return a.write(w, text, view)
}

// flagNames returns the names of a command's flags.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// indent indents examples below their heading.
func indent(example string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(example), "\n", "\n  ")
}

// must panics on programming errors.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
