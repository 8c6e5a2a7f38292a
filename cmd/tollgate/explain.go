package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// explainFlags are the flags of explain.
type explainFlags struct {
	adminClient
	method, data, file, config string
	org, team, key             string
	roles                      []string
	exitCode                   bool
	out                        *output
}

func newExplain() *cobra.Command {
	f := &explainFlags{}
	cmd := &cobra.Command{
		Use:   "explain [PATH | DECISION_ID]",
		Short: "Explain the outcome of a past or hypothetical call, stage by stage",
		Long: `Runs a request through the stages of a gateway without counting it, and without
sending anything but reads to the platform. Prints the result of each stage: the
operation, the remaining limits, the v2 calls of a legacy call, the policy input,
each policy's verdict, the price, and the changes required for the call to pass. No
key is needed: select the caller with --key, or with --org, --team and --role.

The command uses the admin listener of the running gateway. With -c, the command uses
the given configuration without any connection, and facts that depend on the platform
are unknown.

Given a decision ID (X-Tollgate-Decision of a response, or "decision" of a refusal), the
command explains that past call. "tollgate decisions" lists past calls.`,
		Example: `  tollgate explain -X POST /v2/pods --key ann -d '{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}'
  tollgate explain -f request.http --org acme --team research -c tollgate.yaml
  tollgate explain 01K9ZQ4T4Y4N2M7E3Q7JH8V6XD`,
		Args: named(nil, "PATH"),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return runExplain(cmd.Context(), f, args, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.method, "method", "X", "", "method (default: POST with a body, GET without a body)")
	flags.StringVarP(&f.data, "data", "d", "", "body; @FILE reads the body from a file")
	flags.StringVarP(&f.file, "file", "f", "",
		"file with a captured request, as an HTTP/1.1 message or as the JSON object of the admin API; - means standard input")
	flags.StringVar(&f.key, "key", "", "ID of the caller's key")
	flags.StringVar(&f.org, "org", "", "organisation of the caller")
	flags.StringVar(&f.team, "team", "", "team of a caller without a key")
	flags.StringArrayVar(&f.roles, "role", nil, "role of a caller without a key; can be repeated")
	flags.StringVarP(&f.config, "config", "c", "", "explain with this configuration only, without connecting to a gateway")
	adminFlag(cmd, &f.base)
	f.out = outputFlag(cmd, "table", "json", "yaml")
	complete(cmd, "org", orgNames)
	complete(cmd, "team", teamNames)
	complete(cmd, "role", cobra.FixedCompletions(identity.Role("").Values(), cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&f.exitCode, "exit-code", false, "exit with 1 unless the call would pass")
	return cmd
}

func runExplain(ctx context.Context, f *explainFlags, args []string, stdin io.Reader, stdout io.Writer) error {
	x := new(explain.Report)
	var err error
	if len(args) == 1 && !strings.HasPrefix(args[0], "/") { // a past decision
		err = f.do(ctx, http.MethodGet, "/admin/decisions/"+url.PathEscape(args[0]), nil, x)
	} else {
		x, err = f.ask(ctx, args, stdin)
	}
	if err != nil {
		return err
	}
	if f.out.people() {
		err = writeExplanation(stdout, x)
	} else {
		err = f.out.write(stdout, x)
	}
	if err == nil && f.exitCode && x.Verdict != explain.Allowed {
		return errReported
	}
	return err
}

// ask requests an explanation of the request described by the flags and arguments.
func (f *explainFlags) ask(ctx context.Context, args []string, stdin io.Reader) (*explain.Report, error) {
	q, err := f.question(args, stdin)
	if err != nil {
		return nil, err
	}
	if f.config != "" {
		return explainOffline(ctx, f.config, q)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	x := new(explain.Report)
	return x, f.do(ctx, http.MethodPost, "/admin/explain", bytes.NewReader(body), x)
}

// explainOffline explains a request with a configuration only. It does not read secrets.
func explainOffline(ctx context.Context, path string, body *operator.ExplainBody) (*explain.Report, error) {
	loaded, err := loadWithoutSecrets(path)
	if err != nil {
		return nil, err
	}
	loaded.Config.Redis.Embedded = true // no connection to Redis
	isolated, stop := isolation(ctx)
	defer stop()
	g, err := compile(ctx, loaded, isolated)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	body.Offline = true
	return g.Questions().Explain(ctx, body)
}

// question returns the request described by flags, arguments and a captured file.
func (f *explainFlags) question(args []string, stdin io.Reader) (*operator.ExplainBody, error) {
	q := new(operator.ExplainBody)
	if f.file != "" {
		text, err := readFile(f.file, stdin)
		if err != nil {
			return nil, err
		}
		if err := captured(q, text); err != nil {
			return nil, fmt.Errorf("%s: %w", f.file, err)
		}
	}
	if len(args) == 1 {
		q.Path = args[0]
	}
	if f.data != "" {
		q.Body = f.data
		if name, isFile := strings.CutPrefix(f.data, "@"); isFile {
			text, err := readFile(name, stdin)
			if err != nil {
				return nil, err
			}
			q.Body = string(text)
		}
	}
	switch {
	case f.method != "":
		q.Method = strings.ToUpper(f.method)
	case q.Method == "" && q.Body != "":
		q.Method = http.MethodPost
	case q.Method == "":
		q.Method = http.MethodGet
	}
	q.Org, q.Key, q.Team, q.Roles = cmp.Or(f.org, q.Org), cmp.Or(f.key, q.Key), cmp.Or(f.team, q.Team), append(q.Roles, f.roles...)
	if q.Path == "" {
		return nil, usagef("specify a path, a captured request (-f) or a decision ID")
	}
	return q, nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// captured reads the text of a file, which contains an HTTP message or a JSON object, into q. It drops credentials.
func captured(q *operator.ExplainBody, text []byte) error {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		d := json.NewDecoder(bytes.NewReader(trimmed))
		d.DisallowUnknownFields()
		return d.Decode(q)
	}
	head, body, found := bytes.Cut(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	first, fields, _ := strings.Cut(string(head), "\n")
	method, rest, ok := strings.Cut(strings.TrimSpace(first), " ")
	if !ok {
		return errors.New("content is neither a JSON object nor an HTTP request")
	}
	target, _, _ := strings.Cut(rest, " ")
	if u, err := url.Parse(target); err == nil && u.Host != "" { // absolute form
		target = u.RequestURI()
	}
	q.Method, q.Path, q.Header = method, target, map[string]string{}
	if found {
		q.Body = strings.TrimSuffix(string(body), "\n")
	}
	for line := range strings.Lines(fields) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("invalid header line %q", strings.TrimSuffix(line, "\n"))
		}
		switch strings.ToLower(name) {
		case "content-type", "content-encoding", "user-agent":
			q.Header[http.CanonicalHeaderKey(name)] = strings.TrimSpace(value)
		}
	}
	return nil
}
