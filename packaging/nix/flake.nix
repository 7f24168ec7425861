# A flake: nix build 'git+https://github.com/whosup/whosup?dir=packaging/nix'
{
  description = "Which coding-agent session is live, in which process and pane";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      source = ../..;
      version = (builtins.fromTOML (builtins.readFile (source + "/Cargo.toml"))).workspace.package.version;
    in
    {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "whosup";
          inherit version;
          src = source;
          cargoLock.lockFile = source + "/Cargo.lock";
          cargoBuildFlags = [ "--package" "whosup" ];
          # They start real processes, which the sandbox doesn't allow.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            for shell in bash zsh fish; do
              $out/bin/whosup completions $shell > whosup.$shell
            done
            installShellCompletion whosup.{bash,zsh,fish}
            $out/bin/whosup man man
            installManPage man/*.1
          '';
          meta = {
            description = "Which coding-agent session is live, in which process and pane";
            homepage = "https://github.com/whosup/whosup";
            license = [ pkgs.lib.licenses.mit pkgs.lib.licenses.asl20 ];
            mainProgram = "whosup";
          };
        };
      });
    };
}
