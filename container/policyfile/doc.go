// Package policyfile reads the worker's policy from a file, as docs/policy.md describes it. The rules are those of
// container.Policy; this package adds the form, with the line and column of every mistake.
//
//	policy.yaml ──► Load ──► container.Policy      what jobs may ask for     runner.Config.Policy
//	                    └──► container.Resources   for a job that asks for none   runner.Config.Resources
package policyfile
