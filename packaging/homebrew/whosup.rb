# A formula for Homebrew. packaging/release fills in the version and the sum.
class Whosup < Formula
  desc "Which coding-agent session is live, in which process and pane"
  homepage "https://github.com/whosup/whosup"
  url "https://github.com/whosup/whosup/releases/download/v@VERSION@/whosup-@VERSION@-source.tar.gz"
  sha256 "@SOURCE_SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", "--profile", "dist", *std_cargo_args(path: "crates/cli")
    generate_completions_from_executable(bin/"whosup", "completions", shells: [:bash, :zsh, :fish])
    system bin/"whosup", "man", buildpath/"man"
    man1.install Dir[buildpath/"man/*.1"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/whosup --version")
    assert_match "\"sessions\"", shell_output("#{bin}/whosup list --json")
  end
end
