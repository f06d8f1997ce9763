// Package containertest is the suite that every implementation of
// container.Provider passes: Run checks what the contract promises, and no more.
//
//	containertest.Run(t, func(t *testing.T) container.Provider { … }, containertest.Options{Image: …, Shell: true})
//
// Options says what a provider can't do by its nature; a test that needs
// it is left out then.
package containertest
