from fujinsplat.cli import main

main()
