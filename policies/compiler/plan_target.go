package compiler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
	"github.com/open-policy-agent/opa/v1/rego"
)

// target is the name under which package rego returns plans.
const target = "tollgate.accept"

// planKey is the context key under which the plan is stored.
type planKey struct{}

// planTarget is a target plugin that stores the plan and evaluates nothing.
type planTarget struct{}

// IsTarget implements rego.TargetPlugin.
func (planTarget) IsTarget(name string) bool { return name == target }

// PrepareForEval implements rego.TargetPlugin.
func (planTarget) PrepareForEval(ctx context.Context, p *ir.Policy, _ ...rego.PrepareOption) (rego.TargetPluginEval, error) {
	out, ok := ctx.Value(planKey{}).(*ir.Policy)
	if !ok {
		return nil, errors.New("accept: unexpected plan")
	}
	*out = *p
	return nil, nil
}

var register = sync.OnceFunc(func() { rego.RegisterPlugin(target, planTarget{}) })

// planOf returns the plan of the rules, given as references below data, and of their dependencies.
func planOf(ctx context.Context, c *ast.Compiler, rules []string) (*ir.Policy, error) {
	register()
	var query strings.Builder
	for i, rule := range rules {
		fmt.Fprintf(&query, "x%d = %s\n", i, rule)
	}
	body, err := ast.ParseBodyWithOpts(query.String(), ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, err
	}
	var p ir.Policy
	_, err = rego.New(rego.Compiler(c), rego.ParsedQuery(body), rego.Target(target)).PrepareForEval(context.WithValue(ctx, planKey{}, &p))
	return &p, err
}
