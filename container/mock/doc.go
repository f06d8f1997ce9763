// Package mock makes boxes that exist in memory only, for tests of what uses
// boxes, and for programs that show something without an engine. It does no I/O: everything in it is channels, timers and maps, so that it works inside a
// testing/synctest bubble, where an hour takes no time.
//
//	p := mock.New(t)
//	p.On("go test", mock.Reply{Stdout: "FAIL\n", Code: 1})      a script, by the command's beginning
//	p.Fail(mock.Fault{At: mock.OnStart, Err: …, Times: 2})      a fault, by the call
//	… the code under test …
//	p.Calls()                                                   what it did
//
// A command that no script knows runs as one of a few programs that need no
// operating system: true, false, echo, cat, env, pwd, id, sleep. Any other ends with 127. A workspace holds real content.
//
// The mock has opinions. Using a box before its start or after its removal, making
// one twice, and a box that is still there when the test ends fail the test: a real engine would
// forgive or punish these at a time of its own choosing. Lenient turns that off, and so does New(nil).
//
// # Glossary
//
//   - Reply: how a scripted command behaves. Fault: how a call of the provider fails.
//   - Misuse: what the mock fails the test for.
package mock
