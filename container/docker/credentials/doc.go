// Package credentials finds the credentials of registries where the docker command keeps them: in its config.json, and in
// the helper programs that this file names.
//
//	File{Path: "/root/.docker/config.json"}.Get   is a docker.Config.Credentials
//
// The file is read again for each pull, so that a docker login, or a secret that was replaced, counts from then on. It has
//
//	auths        registry → user and password in base64, or an identity token
//	credHelpers  registry → NAME of a program docker-credential-NAME, which is asked in place of auths
//	credsStore   the NAME that is asked for every other registry; auths has what it does not know
//
// Docker Hub is docker.io here. In the file it may be https://index.docker.io/v1/ as well, as the docker command has it.
// Sources: docs.docker.com/reference/cli/docker/login, and the protocol of github.com/docker/docker-credential-helpers.
package credentials
